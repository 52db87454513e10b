#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/experiment.hpp"
#include "scenarios/scenario.hpp"
#include "validate/cluster.hpp"
#include "validate/step_seconds.hpp"

namespace stepcast {

constexpr double kDisturbance = 0.05;  ///< of compute that counts, at most: wall against CPU time
constexpr int kAttempts = 5;           ///< runs made at most, as a multiple of those wanted

/// What `validate` runs: the same for the process that predicts and for the ranks, who each read it anew.
struct ValidationOptions {
  std::string scenario;
  std::vector<std::string> settings;  ///< KEY=VALUE
  int repeats = 7;                    ///< of each point
  bool sleep = false;                 ///< instead of computing: for more ranks than cores
  bool accept_disturbed = false;      ///< on a machine that others use too
};

/// Of the steps of a run and of its forecast.
inline StepStatistic step_statistic(const ValidationOptions& options) {
  return options.sleep ? StepStatistic::median : StepStatistic::mean;
}

/// A network that some points train, with the samples that it works on at once.
struct Need {
  std::string model;  ///< as the scenario names it
  std::int64_t batch = 1;
  bool exchanges = true;     ///< arrays go to and fro in every step, and leave caches as they do
  bool accumulates = false;  ///< gradients of micro-batches add up
  int copies = 1;            ///< of the network, one for each micro-batch, as stages have them

  friend auto operator<=>(const Need&, const Need&) = default;
};

struct Validation {
  Scenario scenario;
  std::vector<std::size_t> points;  ///< of the scenario
  std::vector<Need> needs;          ///< of each of them
  /// Of each of them: words for the cut of its samples or layers, whose part of the network has a trace of
  /// its own; empty where there is none.
  std::vector<std::string> cuts;
  std::vector<bool> compresses;  ///< each of them its gradients
};

/// Reads the scenario. Points without `workers` get as many as there are ranks
/// without servers.
/// @throws InputError for what cannot be run for real
Validation read_validation(const ValidationOptions& options, int ranks);

/// Whether gradients of a point travel compressed.
bool compresses_gradients(const Scenario& scenario, const Point& point);

/// Samples of one pass of a point's workers: a step's, or those of one of the micro-batches that it sums.
/// @throws InputError where it has no batch_per_worker
std::int64_t samples_of_pass(const Scenario& scenario, const Point& point);

std::filesystem::path trace_file(const std::filesystem::path& folder, const Need& need);
std::filesystem::path cut_trace_file(const std::filesystem::path& folder, const Need& need,
                                     const std::string& cut);
/// Times of compressing gradients of this model.
std::filesystem::path compression_file(const std::filesystem::path& folder, const std::string& model);
std::filesystem::path platform_file(const std::filesystem::path& folder);
/// Of messages between ranks on GPUs whose payload lies on the host, as gradients that travel compressed do;
/// only where there are some.
std::filesystem::path host_platform_file(const std::filesystem::path& folder);

/// Point number `index` of the validation with what was measured in `folder` as its traces and platform.
Experiment measured_experiment(const Validation& validation, std::size_t index,
                               const std::filesystem::path& folder, const std::vector<Assignment>& more,
                               Library& library);

/// What ranks share in a point that `cuts` has words for.
NetworkSharing cut_of(const Validation& validation, std::size_t index, const Model& model, int ranks);

/// What a real run cannot do of a plan, in words; empty where it can.
/// @param sleep  ranks only wait as long as layers take: no kernels are needed
std::string why_not_for_real(const Plan& plan, int ranks, bool sleep);

/// Why the noise of a point is not that of real ranks; empty: it is. Ranks that sleep draw factors, those
/// that compute have their own noise, which steps of the trace stand for.
std::string why_not_drawn(const Noise& noise, bool sleep);

}  // namespace stepcast
