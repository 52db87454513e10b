#pragma once

#include <filesystem>
#include <vector>

#include "commands/run/preflight.hpp"
#include "commands/run/run_outputs.hpp"
#include "core/error.hpp"

namespace stepcast {

/// A scenario whose points have all been simulated, in one run or in shards.
struct FinishedRun {
  const Scenario& scenario;
  const CheckedPoints& checked;
  Simulations all;
  Manifest manifest;
  std::filesystem::path folder;
  std::vector<std::string> settings;  ///< `--set`
  bool plots = true;
};

/// Works out everything that needs all points (speed-up, published figures, trends, sensitivity, the report),
/// writes the files, draws the plots and prints the tables. `run` and `merge` both end with this, so their
/// results are the same. @return the rows of published figures
/// @throws InputError if a file cannot be written
std::vector<PublishedRow> finish_run(FinishedRun run);

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
