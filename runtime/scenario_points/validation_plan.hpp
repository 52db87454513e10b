#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/statistics/statistics.hpp"
#include "runtime/ranks/cluster.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/scenario.hpp"
#include "strategies/registry.hpp"

namespace stepcast {

/// Largest share of a run's compute time that the ranks' threads may have waited for a core (from wall and
/// CPU time).
constexpr double kMaxDisturbance = 0.05;
constexpr int kMaxAttempts = 5;  ///< limit of runs of a point, as a multiple of those wanted

/// Options of the real runs of `stepcast validate`. The process that forecasts and the ranks each read the
/// scenario with these options.
struct ValidationOptions {
  std::string scenario;
  std::vector<std::string> settings;  ///< KEY=VALUE
  int repeats = 7;                    ///< wanted runs of each point after each forecast
  int forecasts = 1;                  ///< frozen by turns with the runs, each from captures of its own
  bool sleep = false;             ///< ranks sleep instead of computing, which allows more ranks than cores
  bool measured = false;          ///< links and traces are known: ranks that sleep do not measure them
  bool accept_disturbed = false;  ///< count disturbed runs, on a machine that others use too
  bool share_cores = false;       ///< several ranks compute on each core, in turns
  int point = -1;  ///< the only one of the scenario's points that is run; negative: all are run
};

/// Statistic over the steps of a run and of its forecast.
inline StepStatistic step_statistic(const ValidationOptions& options) {
  return options.sleep ? StepStatistic::median : StepStatistic::mean;
}

/// A network as some points train it. Points with the same variant share the captured trace.
struct NetworkVariant {
  std::string model;       ///< the scenario's name of the model
  std::int64_t batch = 1;  ///< samples of one pass
  /// Arrays are sent or received in every step, which leaves the caches in another state.
  bool exchanges = true;
  bool accumulates = false;  ///< gradients of micro-batches are summed
  int copies = 1;            ///< networks, one for each micro-batch, as pipeline stages have them

  friend auto operator<=>(const NetworkVariant&, const NetworkVariant&) = default;
};

/// The points of a scenario that are run for real. All lists have one entry for each point.
struct Validation {
  Scenario scenario;
  int ranks = 1;
  std::vector<std::size_t> points = {};  ///< indices in scenario.points
  /// The experiments before anything is measured: their plans are those of the real runs, but no time and no
  /// link in them is.
  std::vector<Experiment> unmeasured = {};
  std::vector<NetworkVariant> variants = {};
  /// Spatial or tensor partition of the network, as text for file names. The rank's shard then has a trace of
  /// its own. Empty: no partition.
  std::vector<std::string> partitions = {};

  const Point& point(std::size_t index) const { return scenario.points[points[index]]; }
  const Plan& plan(std::size_t index) const { return unmeasured[index].plan; }
  const Strategy& strategy(std::size_t index) const { return *find_strategy(unmeasured[index].strategy); }
};

/// Reads the scenario. Points without `workers` get all ranks that their servers leave.
/// @param platform  one of these ranks, whose figures do not matter
/// @throws InputError for points that cannot be run for real
Validation read_validation(const ValidationOptions& options, int ranks, const YamlNode& platform);

/// True if any point's plan has what `what` says, such as &Plan::compresses.
bool any_plan(const Validation& validation, bool Plan::*what);

/// The experiment of a point before anything is measured. @param last  of the run, such as its length
Experiment unmeasured_experiment(const Validation& validation, std::size_t index, const YamlNode& platform,
                                 Overrides last, Library& library);

// Files of what was measured, in the output folder of a validation.
std::filesystem::path trace_file(const std::filesystem::path& folder, const NetworkVariant& variant);
std::filesystem::path shard_trace_file(const std::filesystem::path& folder, const NetworkVariant& variant,
                                       const std::string& partition);
/// Times of compressing gradients of this model.
std::filesystem::path compression_file(const std::filesystem::path& folder, const std::string& model);
/// Measured links, arithmetic and loads; ranks on GPUs write none.
std::filesystem::path links_file(const std::filesystem::path& folder);
std::filesystem::path platform_file(const std::filesystem::path& folder);
/// Platform for messages between GPU ranks whose payload is in host memory, such as compressed gradients. The
/// file exists only if some point sends such messages.
std::filesystem::path host_platform_file(const std::filesystem::path& folder);

/// True if earlier ranks of the same run measured what `file` holds. Only ranks that run a single point use
/// such files. All ranks find the same if each asks before the measurement, because rank 0 writes the file
/// after all ranks took part in it.
bool measured_before(const ValidationOptions& options, const std::filesystem::path& file);

/// The experiment of point number `index`, with the traces and the platform that were measured in `folder`.
/// @param more  of the run: what else was measured, and its length
Experiment measured_experiment(const Validation& validation, std::size_t index,
                               const std::filesystem::path& folder, Overrides more, Library& library);

/// Why a plan cannot be run for real; empty if it can.
/// @param any_partition  ranks need no kernels for parts of a network: they sleep for the layer times, or
///                       compute whole networks
std::string unsupported_in_real_run(const Plan& plan, int ranks, bool any_partition);

/// Why a point's noise cannot be that of real ranks; empty if it can. Ranks that sleep draw noise factors.
/// Ranks that compute have the noise of the machine, which the steps of the trace represent in the forecast.
std::string unsupported_noise(const Noise& noise, bool sleep);

}  // namespace stepcast
