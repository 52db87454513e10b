#include "strategies/collectives/phases.hpp"

namespace stepcast {

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
