#pragma once

#include <functional>
#include <string>
#include <vector>

#include "commands/collectives/estimate.hpp"
#include "forecast/measured/training_log.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// The file of a value of `--measured`: FILE, WORKERS=FILE or COLLECTIVE=FILE.
std::string measured_file(const std::string& text);

/// What the files of `--measured` have: tables of nccl-tests, and runs.
struct MeasuredFiles {
  std::vector<MeasuredCollective> network;
  std::vector<MeasuredRuns> runs;
};

/// @throws InputError for a table that does not say what it is of
MeasuredFiles measured_files(const std::vector<std::string>& texts);

/// Logarithm of the likelihood of the tables on a platform. Of each table the mean of ln(estimate / measured)
/// counts, once from 1 MiB on and once below, because all sizes of one range miss together. It is taken as
/// normal with the root mean square of the 43 and 33 published tables (docs/notes/2026-11-nccl-tests.csv).
/// @throws InputError if the platform is without NCCL or too small
double log_likelihood(const std::vector<MeasuredCollective>& tables, const Platform& platform);

/// The same for an experiment of the platform; empty if there are no tables.
std::function<double(const Experiment&)> network_likelihood(const std::vector<MeasuredCollective>& tables);

/// A line for each table: by how much the platform of the draws that remain is off.
std::vector<std::string> measured_network_lines(const std::vector<MeasuredCollective>& tables,
                                                const Platform& platform);

}  // namespace stepcast
