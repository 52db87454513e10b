#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "models/compression.hpp"
#include "models/cut_times.hpp"
#include "models/device.hpp"
#include "models/memory.hpp"
#include "models/model.hpp"
#include "platforms/platform.hpp"
#include "strategies/layer_times.hpp"
#include "strategies/plan.hpp"

namespace stepcast {

/// What compressing gradients costs a device.
struct CompressionTimes {
  CompressionCost cost;
  std::int64_t rows = 1;  ///< one_bit: elements of a column
  std::string flag;       ///< a doubt: where the times are derived
};

/// What a strategy is told of the scenario. Refers to what outlives the call.
struct Setting {
  const Model& model;
  const Device& device;
  const Platform& platform;
  std::vector<int> devices;  ///< of each worker, in rank order
  int steps = 1;
  MemoryOptions memory = {};
  /// Times of one micro-batch of so many samples.
  std::function<LayerTimes(std::int64_t batch)> times = {};
  /// Times of a part of the model, by the rule of docs/cut-times.md from the trace of the nearest batch; or
  /// of a named trace that was captured at the part's shapes.
  std::function<Trace(const PartModel& part)> part_trace = {};
  std::function<const Trace&(const YamlValue& name)> named_trace = {};
  std::int64_t trace_batch = 1;                    ///< of the first trace
  std::optional<YamlValue> batch_per_worker = {};  ///< as written
  std::optional<YamlValue> global_batch = {};
  Bytes sample_size = {};  ///< as stored; 0: input costs nothing
  int prefetch = 1;        ///< micro-batches loaded ahead
  std::function<CompressionTimes(Compression)> compression = {};
  std::function<CompressionTimes(Compression)> host_compression = {};  ///< on a host's processor
  double epoch_samples = 0;  ///< of one pass over the data; 0: not given

  int workers() const { return static_cast<int>(devices.size()); }
};

/// Samples a step of one of `replicas`, from batch_per_worker, global_batch or else the trace (times
/// `micro_batches`). @throws InputError where they cannot be shared evenly
std::int64_t samples_per_replica(const Setting& setting, int replicas, int micro_batches);

/// A row of the table of strategies.
struct Strategy {
  std::string kind;  ///< `strategy: {kind: ...}`
  std::string what;  ///< one line
  /// Reads `strategy:` and plans. @throws InputError
  Plan (*plan)(const YamlValue& options, const Setting& setting);
};

const std::vector<Strategy>& strategies();
std::vector<std::string> strategy_names();  ///< in the order of the table

}  // namespace stepcast
