#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

#include "models/cost/roofline.hpp"
#include "models/network/layer.hpp"
#include "models/network/model.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/options/strategy.hpp"

namespace stepcast {
namespace {

/// @returns the neighbour that sends a message
int source_of(const Parts& parts, int device, const HaloMessage& message) {
  int stride = 1;
  for (std::size_t i = message.dimension + 1; i < parts.size(); ++i) stride *= parts[i];
  return device + (message.from_before ? -stride : stride);
}

/// Gives all messages of one dimension and direction the size of the largest. Corners and uneven partitions
/// make them differ a little. The largest decides when the exchange ends, and equal messages cost the
/// simulator less.
std::vector<std::vector<HaloMessage>> evened(std::vector<std::vector<HaloMessage>> messages) {
  std::map<std::pair<std::size_t, bool>, double> largest;
  for (const auto& received : messages) {
    for (const HaloMessage& message : received) {
      double& most = largest[{message.dimension, message.from_before}];
      most = std::max(most, message.elements);
    }
  }
  for (auto& received : messages) {
    for (HaloMessage& message : received)
      message.elements = largest[{message.dimension, message.from_before}];
  }
  return messages;
}

/// Greatest common divisor of the messages' numbers of elements.
std::int64_t unit_of(const std::vector<std::vector<HaloMessage>>& messages) {
  std::int64_t unit = 0;
  for (const auto& received : messages) {
    for (const HaloMessage& message : received)
      unit = std::gcd(unit, static_cast<std::int64_t>(message.elements));
  }
  return unit;
}

}  // namespace

HaloExchange halo_exchange(const Parts& parts, const std::vector<std::vector<HaloMessage>>& received) {
  const auto messages = evened(received);
  const std::int64_t unit = unit_of(messages);
  if (unit == 0) return {};
  std::map<std::size_t, std::vector<Edge>, std::greater<>> by_dimension;
  int place = 0;  // every message has its own place in the buffer
  double busiest = 0;
  for (std::size_t device = 0; device < messages.size(); ++device) {
    busiest = std::max(busiest, elements_of(messages[device]));
    for (const HaloMessage& message : messages[device]) {
      const int target = device;
      const int chunks = static_cast<std::int64_t>(message.elements) / unit;
      by_dimension[message.dimension].push_back(
          {source_of(parts, target, message), target, place, chunks, 0, 0});
      place += chunks;
    }
  }
  Schedule schedule{static_cast<int>(messages.size()), place, {}};
  for (auto& [dimension, edges] : by_dimension) {
    Phase phase;
    phase.edges = std::make_shared<const std::vector<Edge>>(std::move(edges));
    phase.modulus = place;
    phase.on_receive = OnReceive::copy;
    schedule.phases.push_back(std::move(phase));
  }
  return {std::make_shared<const Schedule>(std::move(schedule)), static_cast<double>(unit) * place, busiest};
}

HaloExchange returned(const HaloExchange& halo) {
  if (halo.schedule == nullptr) return {};
  Schedule schedule{halo.schedule->ranks, halo.schedule->parts, {}};
  for (auto phase = halo.schedule->phases.rbegin(); phase != halo.schedule->phases.rend(); ++phase) {
    std::vector<Edge> edges = *phase->edges;
    for (Edge& edge : edges) std::swap(edge.source, edge.target);
    schedule.phases.push_back(*phase);
    schedule.phases.back().edges = std::make_shared<const std::vector<Edge>>(std::move(edges));
  }
  return {std::make_shared<const Schedule>(std::move(schedule)), halo.elements, halo.busiest};
}

Seconds packing_seconds(const Device& device, Bytes halo) {
  if (halo.value <= 0) return {};
  return 2 * halo / (kStreamingShare * device.memory_bandwidth);
}

namespace {

/// Exchanges with equal edges share a schedule, so that its links are worked out once.
class Schedules {
 public:
  std::shared_ptr<const Schedule> shared(const std::shared_ptr<const Schedule>& schedule) {
    std::vector<int> key{schedule->parts};
    for (const Phase& phase : schedule->phases) {
      key.push_back(-1);
      for (const Edge& edge : *phase.edges) key.insert(key.end(), {edge.source, edge.target, edge.chunks});
    }
    return known_.try_emplace(key, schedule).first->second;
  }

 private:
  std::map<std::vector<int>, std::shared_ptr<const Schedule>> known_;
};

Call add_halo(const HaloExchange& halo, CommunicatorId devices, Schedules& schedules, const Device& device,
              GroupPlan& groups) {
  if (halo.schedule == nullptr) return {};
  const Bytes size = groups.micro_batch * halo.elements * groups.element;
  const CollectiveId collective = add_collective(groups.plan, Collective::Kind::exchange, devices, size);
  if (collective.exists()) groups.plan.collectives.back().schedule = schedules.shared(halo.schedule);
  const Bytes busiest = groups.micro_batch * halo.busiest * groups.element;
  return {collective, "halo", packing_seconds(device, busiest)};
}

/// Messages that every device receives for one layer.
std::vector<std::vector<HaloMessage>> received(const std::vector<std::vector<LayerHalo>>& devices,
                                               std::size_t layer, std::vector<HaloMessage> LayerHalo::*pass) {
  std::vector<std::vector<HaloMessage>> messages;
  for (const auto& halos : devices) messages.push_back(halos[layer].*pass);
  return messages;
}

}  // namespace

void add_halos(const Setting& setting, const SpatialPartition& partition, LayerRange layers,
               const PositionGroup& group, GroupPlan& groups) {
  const Model& model = setting.model;
  std::vector<std::vector<LayerHalo>> devices;
  for (int device = 0; device < device_count(partition.parts); ++device)
    devices.push_back(device_halos(model, partition, device));
  const std::vector<bool> backward = backward_data_needed(model);
  Schedules schedules;
  for (std::size_t i = layers.first; std::cmp_less(i, layers.last) && partition.splits(i); ++i) {
    LayerCalls& calls = groups.calls[i];
    const auto halo = [&](std::vector<HaloMessage> LayerHalo::*pass) {
      return halo_exchange(partition.parts, received(devices, i, pass));
    };
    const auto add = [&](const HaloExchange& exchange, Array array) {
      const Call call = add_halo(exchange, group.devices, schedules, setting.device, groups);
      if (!call.collective.exists()) return call;
      groups.plan.collectives.back().buffer.array = array;
      groups.plan.collectives.back().layer = i;
      return call;
    };
    calls.forward_halo = add(halo(&LayerHalo::forward), Array::activations);
    const bool own =
        group.filters == LocalFilters::own_positions && model.layers[i].kind == LayerKind::locally_connected;
    if (!own) {
      calls.backward_halo = add(halo(&LayerHalo::backward), Array::errors);
    } else if (backward[i]) {
      // A neighbour's outputs have filters that this device does not have. So each device
      // computes what its outputs contribute to the gradients of halos, and sends that back.
      const Call back = add(returned(halo(&LayerHalo::forward)), Array::errors);
      if (back.collective.exists()) calls.after_backward.push_back(back);
    }
    const BorderShare border = border_share(model.layers[i], partition.parts);
    if (calls.forward_halo.collective.exists()) calls.forward_border = border.forward;
    if (calls.backward_halo.collective.exists()) calls.backward_border = border.backward;
    for (const auto& halos : devices)
      calls.sides = std::max({calls.sides, static_cast<int>(halos[i].forward.size()),
                              static_cast<int>(halos[i].backward.size())});
  }
}

}  // namespace stepcast
