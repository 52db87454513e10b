#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

#include "strategies/collectives/algorithms.hpp"

namespace stepcast {

inline void check_group(const Group& group) {
  if (group.ranks < 1 || group.ranks_per_node < 1)
    throw std::invalid_argument("a collective needs ranks >= 1");
}

inline std::shared_ptr<const std::vector<Edge>> share(std::vector<Edge> edges) {
  return std::make_shared<const std::vector<Edge>>(std::move(edges));
}

/// A phase of one round.
inline Phase one_round(std::vector<Edge> edges, int parts, Arrival arrival) {
  Phase phase;
  phase.edges = share(std::move(edges));
  phase.modulus = parts;
  phase.arrival = arrival;
  return phase;
}

/// Copies of a schedule that run at the same time on disjoint ranks or disjoint regions, phase by phase.
/// @param place  sets the ranks and the region of an edge of a copy
Schedule side_by_side(const Schedule& one, int copies, const std::function<void(Edge&, int copy)>& place);

}  // namespace stepcast
