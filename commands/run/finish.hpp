#pragma once

#include <filesystem>
#include <vector>

#include "commands/run/preflight.hpp"
#include "commands/run/run_outputs.hpp"
#include "core/error.hpp"
#include "core/os/missing_files.hpp"

namespace stepcast {

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
