#include "strategies/halo_schedule.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <numeric>

#include "models/roofline.hpp"

namespace stepcast {
namespace {

/// The neighbour that a message comes from.
int source_of(const Parts& parts, int device, const HaloMessage& message) {
  int stride = 1;
  for (std::size_t i = message.dimension + 1; i < parts.size(); ++i) stride *= parts[i];
  return device + (message.from_before ? -stride : stride);
}

/// Messages of one dimension and direction, all as large as the largest of them. Corners and uneven cuts make
/// them differ a little; the largest decides when the exchange ends, and equal ones cost the simulator less.
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

/// Elements of the smallest unit of which every message has a whole number.
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
  int place = 0;  // every message has a place of its own in the buffer
  double busiest = 0;
  for (std::size_t device = 0; device < messages.size(); ++device) {
    busiest = std::max(busiest, elements_of(messages[device]));
    for (const HaloMessage& message : messages[device]) {
      const int target = static_cast<int>(device);
      const int chunks = static_cast<int>(static_cast<std::int64_t>(message.elements) / unit);
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
    phase.arrival = Arrival::replace;
    schedule.phases.push_back(std::move(phase));
  }
  return {std::make_shared<const Schedule>(std::move(schedule)),
          static_cast<double>(unit) * static_cast<double>(place), busiest};
}

Seconds packing_seconds(const Device& device, Bytes halo) {
  if (halo.value <= 0) return {};
  return 2 * halo / (kStreamingShare * device.memory_bandwidth);
}

}  // namespace stepcast
