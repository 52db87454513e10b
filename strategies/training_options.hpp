#pragma once

#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "strategies/layer_times.hpp"
#include "strategies/plan.hpp"

namespace stepcast {

/// Keys of `strategy:` that every strategy knows; `compression` (compression.hpp) apart.
struct TrainingOptions {
  double compute_factor = 1;  ///< on all layer times
  Seconds step_overhead;      ///< work of a step outside the layers, such as input
  bool mixed = false;         ///< gradients and activations of 2 bytes
  double compute_slowdown = 1;

  Bytes element() const { return {mixed ? 2.0 : 4.0}; }  ///< of a gradient on the wire
};

const std::vector<std::string>& training_keys();
TrainingOptions read_training_options(const YamlMap& map);

/// `all_reduce` and how it runs.
struct CommunicationOptions {
  AllReduceChoice all_reduce;
  int streams = 1, in_flight = 1;
};

const std::vector<std::string>& communication_keys();
CommunicationOptions read_communication(const YamlMap& map);
void apply(const CommunicationOptions& options, Communicator& communicator);

/// "25 MiB", `tensor` (0: each array alone) or `model` (all at once).
Bytes read_bucket(const YamlValue& value);

/// All lists after one another.
std::vector<std::string> joined_keys(const std::vector<std::vector<std::string>>& lists);

/// Names and times of the layers; no buckets. Notes in the plan where the times are from.
Workload make_workload(const Model& model, LayerTimes times, double compute_factor, Plan& plan);

/// Arrays that the update of a trace goes through: SGD with momentum reads three and writes two.
constexpr double kUpdateArrays = 5;

/// Seconds of arithmetic that touches `arrays` arrays of all parameters, by the trace's own update.
Seconds array_work(const Workload& workload, double arrays);

}  // namespace stepcast
