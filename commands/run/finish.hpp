#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "commands/collectives/estimate.hpp"
#include "commands/run/checked_points.hpp"
#include "commands/run/run_options.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "forecast/forecast.hpp"
#include "forecast/measured/next_measurement.hpp"
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
/// @param settings  values of `--set`
Manifest manifest_of(const Scenario& scenario, const Library& library,
                     const std::vector<std::string>& settings);

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
  std::string worthy;                             ///< how many workers are worth it, a sentence; may be empty
  std::string change;                             ///< what to change first, a sentence; empty without advice
  std::vector<std::string> advice;                ///< lines with the changes that help most
  std::vector<std::string> measured;              ///< lines with measurements and what to measure next
  Results advised;                                ///< the same for `--json`
};

/// Writes results.csv, results.jsonl and manifest.json; published.csv and sensitivity.csv if they have rows;
/// and draws the plots. A file for which the disk has no room is left out.
DrawnPlots write_outputs(const std::filesystem::path& folder, const Outputs& outputs,
                         const Manifest& manifest, bool plots);

/// Writes report.html. @param settings  `--set`. @throws InputError `FILE: cannot write: REASON`
void write_page(const std::filesystem::path& folder, const Outputs& outputs, const Manifest& manifest,
                const Scenario& scenario, const std::vector<std::string>& settings);

/// Prints the table of a scenario, the points that do not fit, calibrated values, the sensitivity to the
/// assumptions, and the notes of the checks.
void print_outputs(const Outputs& outputs, const Simulations& all, const Scenario& scenario,
                   const CheckedPoints& checked);

/// A scenario with what its intervals need.
struct PreparedRun {
  Scenario scenario;             ///< with its default ranges
  bool has_discrepancy = false;  ///< its intervals contain what the model itself gets wrong
  int draws = 1;                 ///< of its assumptions
};

/// @param largest  the experiment with the most workers of all points, which decides about default ranges
/// @param draws    `--draws`; 0: the default; 1: one simulation without intervals
PreparedRun prepared_run(const Scenario& given, const Experiment& largest, int draws, Library& library);

/// A scenario whose points have all been simulated, in one run or in shards.
struct FinishedRun {
  const PreparedRun& prepared;
  const CheckedPoints& checked;
  Manifest manifest;
  std::filesystem::path folder;
  std::vector<std::string> settings;  ///< `--set`
  bool plots = true;
  double least_gain = 1.5;  ///< of a doubling of the workers that is worth it
  bool advice = true;       ///< also simulate what a user can change
  int processes = 1;        ///< for these simulations
  MeasuringBudget budget = {};
  std::vector<MeasuredCollective> network = {};  ///< tables of nccl-tests that weighed the draws
};

/// Published figures and missing files, which the caller reports after a finished run.
struct FinishedOutputs {
  std::vector<PublishedRow> published;
  MissingFiles missing;
};

/// Works out everything that needs all points (speed-up, published figures, trends, sensitivity, the report),
/// writes the files, draws the plots and prints the tables. `run` and `merge` both end with this, so their
/// results are the same.
/// @throws InputError if a file cannot be written for a reason other than a full disk
FinishedOutputs finish_run(FinishedRun run, Library& library, Simulations all);

/// Prints the table of published figures of all scenarios, if there are any.
void print_published(const std::vector<PublishedRow>& published);

/// All points of a scenario.
std::vector<std::size_t> all_points(const Scenario& scenario);

/// Some points have no result; those of all others were written. Exit code 4.
struct PointsFailed : RankLost {
  using RankLost::RankLost;
};

/// @throws PointsFailed if a point failed. @param failed  number of points, in all scenarios
void report_failed_points(std::size_t failed);

}  // namespace stepcast
