#include "strategies/parameter_server/partitioned_replica.hpp"

#include <algorithm>
#include <set>
#include <stdexcept>

#include "models/layer_times/trace.hpp"
#include "models/partition/layer_partition.hpp"
#include "platforms/topology.hpp"
#include "strategies/model_parallel/halo_exchange.hpp"
#include "strategies/model_parallel/layer_parallel_plans.hpp"

namespace stepcast {
namespace {

void add(const std::vector<Exchange>& exchanges, int machines, double sample_bytes, PartitionedStep& step) {
  for (const Exchange& exchange : exchanges) {
    const int passes = exchange.kind == Exchange::Kind::all_reduce ? 2 : 1;  // over the ring
    step.rounds += passes * (machines - 1);
    step.bytes += Bytes{passes * sample_bytes * exchange.elements * (machines - 1) / machines};
  }
}

void add(const std::vector<HaloMessage>& messages, double sample_bytes, const Device& device,
         PartitionedStep& step) {
  std::set<std::size_t> dimensions;  // exchanged one after the other, both sides at the same time
  for (const HaloMessage& message : messages) dimensions.insert(message.dimension);
  step.rounds += static_cast<int>(dimensions.size());
  const Bytes received{sample_bytes * elements_of(messages)};
  step.bytes += received;
  step.compute +=
      2 * packing_seconds(device, received);  // packing of the sent halo, unpacking of the received one
}

/// @returns the device in the middle of the grid, which has the most neighbours
int middle_of(const Parts& parts) {
  int device = 0;
  for (const int along : parts) device = device * along + along / 2;
  return device;
}

}  // namespace

PartitionedStep partitioned_step(const Setting& setting, int machines, std::int64_t batch) {
  const std::string problem = partition_problem(setting.model, machines);
  if (!problem.empty()) throw std::invalid_argument(problem);
  const PartitionedModel model = partition(setting.model, machines);
  PartitionedStep step;
  step.compute = step_time(setting.part_trace(
      {&model.sharded.part, std::vector<std::int64_t>(setting.model.layers.size(), batch)}));
  if (machines == 1) return step;
  constexpr double kSingle = 4;  // B an element
  const double sample_bytes = kSingle * static_cast<double>(batch);
  const std::vector<LayerHalo> halos = device_halos(setting.model, model.cut, middle_of(model.cut.parts));
  for (std::size_t i = 0; i < halos.size(); ++i) {
    const LayerExchange& exchange = model.sharded.exchanges[i];
    add(exchange.before_forward, machines, sample_bytes, step);
    add(exchange.after_backward, machines, sample_bytes, step);
    add(halos[i].forward, sample_bytes, setting.device, step);
    add(halos[i].backward, sample_bytes, setting.device, step);
  }
  return step;
}

namespace {

Seconds exchange_of(const Setting& setting, const PartitionedStep& step) {
  const Topology topology(setting.platform);
  const int from = setting.devices[0], to = setting.devices[1];
  const bool local = setting.platform.node_of(from) == setting.platform.node_of(to);
  const auto& costs = local ? setting.platform.local_message_costs : setting.platform.message_costs;
  const MessageCost& cost = message_cost(costs, step.bytes / std::max(step.rounds, 1));
  std::vector<int> links;
  topology.route(from, to, links);
  double bandwidth = 1e300;
  for (const int link : links) bandwidth = std::min(bandwidth, topology.link(link).bandwidth.value);
  const double latency = topology.route_latency(from, to).value + cost.overhead.value;
  return {step.rounds * latency + step.bytes.value / (cost.bandwidth_factor * bandwidth)};
}

}  // namespace

ReplicaStep replica_step(const Setting& setting, int machines, std::int64_t batch) {
  if (machines < 2) return {};
  const PartitionedStep step = partitioned_step(setting, machines, batch);
  double whole = 0;
  for (const LayerSeconds& layer : setting.times(batch).median)
    whole += layer.forward + layer.backward + layer.update;
  return {step.compute.value / whole, exchange_of(setting, step)};
}

}  // namespace stepcast
