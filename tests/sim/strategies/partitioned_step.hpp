#pragma once

#include <set>

#include "models/layer_times/trace.hpp"
#include "models/partition/layer_partition.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast::test {

/// The closed form of a mini-batch of one replica that is partitioned over machines.
struct PartitionedStep {
  /// Time of the machine with the largest part: forward, backward, update, packing of halos.
  Seconds compute;
  int rounds = 0;  ///< rounds of messages, one after the other
  Bytes bytes;     ///< bytes that the busiest machine receives in them
};

inline void add(const std::vector<Exchange>& exchanges, int machines, double sample_bytes,
                PartitionedStep& step) {
  for (const Exchange& exchange : exchanges) {
    const int passes = exchange.kind == Exchange::Kind::all_reduce ? 2 : 1;  // over the ring
    step.rounds += passes * (machines - 1);
    step.bytes += Bytes{passes * sample_bytes * exchange.elements * (machines - 1) / machines};
  }
}

inline void add(const std::vector<HaloMessage>& messages, double sample_bytes, const Device& device,
                PartitionedStep& step) {
  std::set<std::size_t> dimensions;  // exchanged one after the other, both sides at the same time
  for (const HaloMessage& message : messages) dimensions.insert(message.dimension);
  step.rounds += static_cast<int>(dimensions.size());
  const Bytes received{sample_bytes * elements_of(messages)};
  step.bytes += received;
  step.compute += 2 * packing_seconds(device, received);  // of the sent halo, and unpacking
}

/// @returns the device in the middle of the grid, which has the most neighbours
inline int middle_of(const Parts& parts) {
  int device = 0;
  for (const int along : parts) device = device * along + along / 2;
  return device;
}

/// A step takes compute + rounds x latency + bytes / bandwidth on an unshared network, if no exchange is
/// beside work: one message to each side for a halo, machines - 1 rounds for an all-gather or a
/// reduce-scatter of activations.
inline PartitionedStep partitioned_step(const Setting& setting, int machines, std::int64_t batch) {
  const PartitionedModel model = partition(setting.model, machines);
  PartitionedStep step;
  step.compute = step_time(setting.part_trace(
      {&model.sharded.part, std::vector<std::int64_t>(setting.model.layers.size(), batch)}));
  const double sample_bytes = 4 * static_cast<double>(batch);
  const auto halos = device_halos(setting.model, model.spatial, middle_of(model.spatial.parts));
  for (std::size_t i = 0; i < halos.size(); ++i) {
    const LayerExchange& exchange = model.sharded.exchanges[i];
    add(exchange.before_forward, machines, sample_bytes, step);
    add(exchange.after_backward, machines, sample_bytes, step);
    add(halos[i].forward, sample_bytes, setting.device, step);
    add(halos[i].backward, sample_bytes, setting.device, step);
  }
  return step;
}

}  // namespace stepcast::test
