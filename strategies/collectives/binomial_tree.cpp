#include <algorithm>

#include "strategies/collectives/phases.hpp"

namespace stepcast {

Schedule binomial_reduce(const Group& group) {
  check_group(group);
  Schedule schedule{group.ranks, 1, {}};
  for (int distance = 1; distance < group.ranks; distance <<= 1) {
    std::vector<Edge> edges;
    for (int rank = distance; rank < group.ranks; rank += 2 * distance) {
      edges.push_back({rank, rank - distance, 0, 1, 0, 0});
    }
    schedule.phases.push_back(one_round(std::move(edges), 1, Arrival::add));
  }
  return schedule;
}

Schedule binomial_broadcast(const Group& group) {
  Schedule schedule = binomial_reduce(group);
  std::reverse(schedule.phases.begin(), schedule.phases.end());
  for (Phase& phase : schedule.phases) {
    std::vector<Edge> edges = *phase.edges;
    for (Edge& edge : edges) std::swap(edge.source, edge.target);
    phase = one_round(std::move(edges), 1, Arrival::replace);
  }
  return schedule;
}

Schedule binomial_all_reduce(const Group& group) {
  Schedule schedule = binomial_reduce(group);
  const Schedule back = binomial_broadcast(group);
  schedule.phases.insert(schedule.phases.end(), back.phases.begin(), back.phases.end());
  return schedule;
}

}  // namespace stepcast
