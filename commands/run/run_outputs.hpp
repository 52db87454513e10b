#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "forecast/forecast_options.hpp"
#include "forecast/summary.hpp"
#include "report/plots/results_plots.hpp"
#include "report/results/manifest.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// The results folder of a scenario.
std::filesystem::path folder_of(const Scenario& scenario, const RunOptions& options);

/// The manifest of a run: version, command line, and the hashes of all files that were read.
Manifest manifest_of(const Scenario& scenario, const Library& library);

/// Path of the journal of finished simulations. An existing journal is deleted, unless `--resume` is given
/// and the inputs and settings are the same.
std::filesystem::path journal_of(const std::filesystem::path& folder, const Manifest& manifest,
                                 const RunOptions& options);

/// The results of a scenario.
struct Outputs {
  Results results;
  std::vector<PublishedRow> published;
  std::vector<Sensitivity> sensitivity;
  std::string sensitive_point, sensitive_column;  ///< the figure whose sensitivity is given
  std::vector<std::string> unmoving;              ///< assumptions that move nothing
};

/// Writes results.csv, results.jsonl and manifest.json; published.csv and sensitivity.csv if they have rows;
/// and draws the plots. A file for which the disk has no room is left out.
DrawnPlots write_outputs(const std::filesystem::path& folder, const Outputs& outputs,
                         const Manifest& manifest, bool plots);

/// Writes report.html. @param settings  `--set`. @throws InputError `FILE: cannot write: REASON`
void write_page(const std::filesystem::path& folder, const Outputs& outputs, const Manifest& manifest,
                const Scenario& scenario, const std::vector<std::string>& settings);

/// Prints the table of a scenario, the points that do not fit, calibrated values, the sensitivity to the
/// assumptions, and the flags of traces.
/// @param largest  the experiment with the most workers, see CheckedPoints
void print_outputs(const Outputs& outputs, const Simulations& all, const Scenario& scenario,
                   const Experiment& largest);

}  // namespace stepcast
