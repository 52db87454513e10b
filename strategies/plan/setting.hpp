#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "models/cost/device.hpp"
#include "models/cost/memory.hpp"
#include "models/layer_times/compression_times.hpp"
#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"
#include "models/partition/partition_times.hpp"
#include "platforms/platform.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Layer times of one micro-batch, from traces of one model.
struct LayerTimes {
  std::vector<LayerSeconds> median;
  std::vector<std::vector<LayerSeconds>> samples;
  std::string
      kind;  ///< "captured", "derived", with ", interpolated" or ", scaled" where the batch was not measured
  std::vector<std::string> flags;
  int ranks = 1;             ///< ranks of the samples: equally many of each, one rank after the other
  double update_arrays = 5;  ///< see Trace::update_arrays
  std::vector<LayerSeconds> host = {};  ///< see Workload::host
};

/// Times for `batch` samples: a trace of that batch; else between two traces of smaller and larger batches,
/// linear in the batch layer by layer; else the nearest trace, forward and backward in proportion to the
/// batch (the update does not depend on it).
/// @param traces  at least one, all of this model
LayerTimes layer_times(const Model& model, std::vector<const Trace*> traces, std::int64_t batch);

/// The times of the host in a trace, for Workload::host; empty where it takes none.
std::vector<LayerSeconds> host_times(const Trace& trace);

/// Time that a device takes to compress gradients.
struct CompressionTimes {
  CompressionCost cost;
  std::int64_t rows = 1;  ///< one_bit: elements of a column
  std::string flag;       ///< doubt about derived times; empty: none
};

/// Times that a real run has measured before its forecast. They stand in place of the values of keys.
struct MeasuredTimes {
  std::optional<double> compute_slowdown;  ///< of compute during a collective; >= 1
  std::optional<double> message_slowdown;  ///< of compute while a message travels; >= 1
  std::optional<double> load_slowdown;     ///< of compute while input loads; >= 1
  /// The time of one of Strategy::timed_arithmetic, for the keys that a scenario leaves to their defaults.
  std::function<std::optional<Seconds>(const std::string& name)> arithmetic;
};

/// The scenario as a strategy sees it. The references and functions refer to objects that outlive the call.
struct Setting {
  const Model& model;
  const Device& device;
  const Platform& platform;
  std::vector<int> devices;  ///< endpoint of each worker, in rank order
  int steps = 1;
  MemoryOptions memory = {};
  /// Layer times of one micro-batch of `batch` samples.
  std::function<LayerTimes(std::int64_t batch)> times = {};
  /// Layer times of a part of the model, by the rule of `part_trace`
  /// (docs/explanation/partition-times.md).
  std::function<Trace(const PartModel& part)> part_trace = {};
  /// A trace by its name, such as one that was captured at the shapes of a part.
  std::function<const Trace&(const YamlValue& name)> named_trace = {};
  std::int64_t trace_batch = 1;                    ///< samples of the first trace
  std::optional<YamlValue> batch_per_worker = {};  ///< the key as the scenario writes it
  std::optional<YamlValue> global_batch = {};
  Bytes sample_size = {};    ///< size of a stored sample; 0: loading input takes no time
  int prefetch = 1;          ///< micro-batches that are loaded ahead
  double load_slowdown = 1;  ///< factor on compute while input loads; >= 1
  std::function<CompressionTimes(Compression)> compression = {};       ///< on a worker's device
  std::function<CompressionTimes(Compression)> host_compression = {};  ///< on a host's processor
  double epoch_samples = 0;  ///< samples of one pass over the data; 0: not given
  MeasuredTimes measured = {};

  int workers() const { return devices.size(); }
  /// The measured time of an arithmetic; none if it was not measured.
  std::optional<Seconds> measured_time(const std::string& arithmetic) const;
};

/// Samples per step of each of `replicas`: from batch_per_worker, from global_batch, or the batch of the
/// trace times `micro_batches`. @throws InputError if replicas or micro-batches cannot share them evenly
std::int64_t samples_per_replica(const Setting& setting, int replicas, int micro_batches);

}  // namespace stepcast
