#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "report/results/results.hpp"

namespace stepcast {

/// One real run of a point: a line of samples.jsonl.
struct RunSample {
  std::optional<std::int64_t> forecast = {};  ///< number of the forecast, where there are several
  std::string point = {};
  std::int64_t repeat = 0;
  double step_seconds = 0;
  double compute_seconds = 0;  ///< mean over all workers
  double disturbance = 0;      ///< largest share of a rank's compute in which its threads waited for a core
  double stolen = 0;           ///< largest share that the host gave to others
  double waiting_seconds = 0;
  std::optional<double> round_trip_seconds = {};  ///< core-to-core latency after the run
  std::optional<double> probe_slowness = {};      ///< of the machine before the run
  std::optional<double> round_slowness = {};      ///< of the machine during the round
  bool kept = false;                              ///< counts
};

/// The runs of a file, of which the last line may be torn.
/// @throws InputError with the line of a missing or bad column
std::vector<RunSample> read_run_samples(const std::filesystem::path& file);

Row to_row(const RunSample& one);

}  // namespace stepcast
