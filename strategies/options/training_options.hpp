#pragma once

#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/layer_times.hpp"

namespace stepcast {

/// Options that every strategy has; `compression` is read by strategies/compression.
struct TrainingOptions {
  double compute_factor = 1;    ///< multiplies all layer times
  Seconds step_overhead;        ///< time of a step outside the layers, such as input work
  bool mixed = false;           ///< gradients and activations have 2 bytes
  double compute_slowdown = 1;  ///< factor on compute while a collective runs beside it; >= 1

  Bytes element() const { return {mixed ? 2.0 : 4.0}; }  ///< size of a gradient in a message
};

const StrategyKeys& training_keys();
TrainingOptions read_training_options(const YamlMap& map);

/// Gradients that one all-reduce sums, where the scenario does not say: 25 MiB.
constexpr Bytes kDefaultBucket{26214400};
/// A bucket size that holds every model: all gradients travel at once.
constexpr Bytes kWholeModel{1e300};

StrategyKey bucket_key();
/// `bucket`: a size such as "25 MiB", `tensor` (0 B: each array alone) or `model` (kWholeModel).
Bytes read_bucket(const YamlMap& map, Bytes otherwise = kDefaultBucket);

/// Where the layer times of a plan come from, for the results.
struct TimesSource {
  std::string kind;                ///< see LayerTimes::kind
  std::vector<std::string> flags;  ///< doubts about the times
};

/// The layers' names and times. Buckets, statistics and input are left to the strategy.
struct TimedWorkload {
  Workload workload;
  TimesSource source;
};
TimedWorkload make_workload(const Model& model, LayerTimes times, double compute_factor);

/// Arrays that the update of a trace goes through: SGD with momentum reads three and writes two.
constexpr double kUpdateArrays = 5;

/// Seconds of arithmetic that reads and writes `arrays` arrays of all parameters, derived from the update of
/// the trace.
Seconds array_work(const Workload& workload, double arrays);

}  // namespace stepcast
