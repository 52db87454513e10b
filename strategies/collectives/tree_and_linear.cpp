#include <algorithm>

#include "strategies/collectives/phases.hpp"

namespace stepcast {

Schedule flat_reduce(const Group& group) {
  check_group(group);
  Schedule schedule{group.ranks, 1, {}};
  if (group.ranks == 1) return schedule;
  std::vector<Edge> edges;
  for (int rank = 1; rank < group.ranks; ++rank) edges.push_back({rank, 0, 0, 1, 0, 0});
  schedule.phases.push_back(one_round(std::move(edges), 1, Arrival::add));
  return schedule;
}

Schedule flat_broadcast(const Group& group) {
  check_group(group);
  Schedule schedule{group.ranks, 1, {}};
  if (group.ranks == 1) return schedule;
  std::vector<Edge> edges;
  for (int rank = 1; rank < group.ranks; ++rank) edges.push_back({0, rank, 0, 1, 0, 0});
  schedule.phases.push_back(one_round(std::move(edges), 1, Arrival::replace));
  return schedule;
}

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

Schedule all_to_all(const Group& group) {
  check_group(group);
  const int p = group.ranks;
  if (p > 20'000)
    throw std::invalid_argument("all_to_all: at most 20000 ranks");  // P x P parts must stay countable
  Schedule schedule{p, p * p, {}};
  for (int round = 1; round < p; ++round) {
    std::vector<Edge> edges;
    edges.reserve(static_cast<std::size_t>(p));
    for (int rank = 0; rank < p; ++rank) {
      const int target = (rank + round) % p;
      edges.push_back({rank, target, rank * p + target, 1, 0, 0});
    }
    schedule.phases.push_back(one_round(std::move(edges), p * p, Arrival::replace));
  }
  return schedule;
}

}  // namespace stepcast
