#pragma once

#include "tests/sim/random_case.hpp"

namespace stepcast {

/// A random step with several communicators at the same time, on a random cluster.
struct RandomGroups {
  enum Kind {
    rings,       ///< several groups of workers, each with collectives of its own, staggered
    orders,      ///< all workers in several communicators, each in another order
    tensor,      ///< data x tensor: sums inside replicas beside sums of gradients over them
    pipeline,    ///< data x pipeline
    three_ways,  ///< data x tensor x pipeline
    spatial,     ///< samples x parts of each: halos inside replicas, sums of gradients over all
  };

  RandomCase cluster;
  Kind kind;
  int communicators;  ///< rings, orders
  int ways;           ///< ranks of a tensor group
  int stages, micro_batches;
  bool dealt;               ///< rings: endpoints go to the groups in turn, else each gets consecutive ones
  Algorithm gradient;       ///< of the first communicators
  Algorithm other;          ///< of the others
  Collective::Kind inside;  ///< of tensor groups
  double crossing;          ///< bytes of an activation
  int streams;
  int workers;

  /// Workers come in multiples of this.
  int together() const { return kind == rings ? communicators : ways * stages; }
};

inline RandomGroups random_groups(std::uint32_t number) {
  using G = RandomGroups;
  using K = Collective::Kind;
  const std::uint32_t key = number + 1'000'000;  // other clusters than those of random_case
  G g{};
  g.cluster = random_case(key);
  g.kind = choice<G::Kind>({G::rings, G::orders, G::tensor, G::pipeline, G::three_ways}, key, 20);
  g.communicators = choice<int>({2, 3, 4}, key, 21);
  g.ways = g.kind == G::tensor || g.kind == G::three_ways ? choice<int>({2, 4, 8}, key, 22) : 1;
  g.stages = g.kind == G::pipeline || g.kind == G::three_ways ? choice<int>({2, 3, 4}, key, 23) : 1;
  g.micro_batches = choice<int>({1, 2, 4}, key, 24);
  g.dealt = choice<int>({0, 1, 1}, key, 25) == 1;
  const std::vector<Algorithm> algorithms{Algorithm::ring,          Algorithm::ring,
                                          Algorithm::automatic,     Algorithm::halving_doubling,
                                          Algorithm::binomial_tree, Algorithm::hierarchical};
  g.gradient = choice<Algorithm>(algorithms, key, 26);
  g.other = choice<Algorithm>(algorithms, key, 27);
  g.inside = choice<K>({K::all_reduce, K::all_reduce, K::all_gather, K::all_to_all}, key, 28);
  g.crossing = choice<double>({3e4, 1e6, 2e7}, key, 29);
  g.streams = choice<int>({1, 1, 2}, key, 30);
  const int most = kRandomNodes * g.cluster.devices;
  while (2 * g.together() > most) g.ways /= 2;
  while (g.cluster.workers() < 2 * g.together())
    g.cluster.nodes = std::min(2 * g.cluster.nodes, kRandomNodes);
  g.workers = g.cluster.workers() / g.together() * g.together();
  return g;
}

/// Draws the same cluster and sizes as random_groups, with samples partitioned over 2, 4 or 8 workers each.
inline RandomGroups random_spatial(std::uint32_t number) {
  RandomGroups g = random_groups(number);
  g.kind = RandomGroups::spatial;
  g.ways = choice<int>({2, 4, 8}, number + 1'000'000, 40);
  g.stages = 1;
  while (g.cluster.workers() < 2 * g.ways) g.cluster.nodes = std::min(2 * g.cluster.nodes, kRandomNodes);
  g.workers = g.cluster.workers() / g.ways * g.ways;
  return g;
}

}  // namespace stepcast
