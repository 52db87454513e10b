#include <set>
#include <stdexcept>

#include "models/shard.hpp"
#include "models/trace_times.hpp"
#include "strategies/halo_schedule.hpp"
#include "strategies/shared_strategies.hpp"

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
  std::set<std::size_t> dimensions;  // one after the other, both sides at once
  for (const HaloMessage& message : messages) dimensions.insert(message.dimension);
  step.rounds += static_cast<int>(dimensions.size());
  const Bytes received{sample_bytes * elements_of(messages)};
  step.bytes += received;
  step.compute += 2 * packing_seconds(device, received);  // of what is sent, unpacking of what is received
}

/// The device in the middle of the grid: it has neighbours on all sides, where any has.
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

}  // namespace stepcast
