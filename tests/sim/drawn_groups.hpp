#pragma once

#include "tests/sim/drawn_case.hpp"

namespace stepcast {

/// A random step with several communicators at the same time, on a random cluster.
struct DrawnGroups {
  enum Kind {
    rings,       ///< several groups of workers, each with collectives of its own, staggered
    orders,      ///< all workers in several communicators, each in another order
    tensor,      ///< data x tensor: sums inside replicas beside sums of gradients over them
    pipeline,    ///< data x pipeline
    three_ways,  ///< data x tensor x pipeline
    spatial,     ///< samples x parts of each: halos inside replicas, sums of gradients over all
  };

  DrawnCase cluster;
  Kind kind;
  int communicators;  ///< rings, orders
  int ways;           ///< ranks of a tensor group
  int stages, micro_batches;
  bool dealt;               ///< rings: endpoints go to the groups in turn, else each gets a stretch of them
  Algorithm gradient;       ///< of the first communicators
  Algorithm other;          ///< of the others
  Collective::Kind inside;  ///< of tensor groups
  double crossing;          ///< bytes of an activation
  int streams;
  int workers;

  /// Workers come in multiples of this.
  int together() const { return kind == rings ? communicators : ways * stages; }
};

inline DrawnGroups drawn_groups(std::uint32_t number) {
  using G = DrawnGroups;
  using K = Collective::Kind;
  const std::uint32_t key = number + 1'000'000;  // other clusters than those of drawn_case
  G g{};
  g.cluster = drawn_case(key);
  g.kind = drawn<G::Kind>({G::rings, G::orders, G::tensor, G::pipeline, G::three_ways}, key, 20);
  g.communicators = drawn<int>({2, 3, 4}, key, 21);
  g.ways = g.kind == G::tensor || g.kind == G::three_ways ? drawn<int>({2, 4, 8}, key, 22) : 1;
  g.stages = g.kind == G::pipeline || g.kind == G::three_ways ? drawn<int>({2, 3, 4}, key, 23) : 1;
  g.micro_batches = drawn<int>({1, 2, 4}, key, 24);
  g.dealt = drawn<int>({0, 1, 1}, key, 25) == 1;
  const std::vector<Algorithm> algorithms{Algorithm::ring,          Algorithm::ring,
                                          Algorithm::automatic,     Algorithm::halving_doubling,
                                          Algorithm::binomial_tree, Algorithm::hierarchical};
  g.gradient = drawn<Algorithm>(algorithms, key, 26);
  g.other = drawn<Algorithm>(algorithms, key, 27);
  g.inside = drawn<K>({K::all_reduce, K::all_reduce, K::all_gather, K::all_to_all}, key, 28);
  g.crossing = drawn<double>({3e4, 1e6, 2e7}, key, 29);
  g.streams = drawn<int>({1, 1, 2}, key, 30);
  const int most = kDrawnNodes * g.cluster.devices;
  while (2 * g.together() > most) g.ways /= 2;
  while (g.cluster.workers() < 2 * g.together()) g.cluster.nodes = std::min(2 * g.cluster.nodes, kDrawnNodes);
  g.workers = g.cluster.workers() / g.together() * g.together();
  return g;
}

/// The same cluster and sizes with samples cut over 2, 4 or 8 workers each.
inline DrawnGroups drawn_spatial(std::uint32_t number) {
  DrawnGroups g = drawn_groups(number);
  g.kind = DrawnGroups::spatial;
  g.ways = drawn<int>({2, 4, 8}, number + 1'000'000, 40);
  g.stages = 1;
  while (g.cluster.workers() < 2 * g.ways) g.cluster.nodes = std::min(2 * g.cluster.nodes, kDrawnNodes);
  g.workers = g.cluster.workers() / g.ways * g.ways;
  return g;
}

}  // namespace stepcast
