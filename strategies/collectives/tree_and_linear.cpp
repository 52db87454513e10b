#include <algorithm>

#include "strategies/collectives/schedule.hpp"

namespace stepcast {

Schedule flat_reduce(const Group& group) {
  check_group(group);
  Schedule schedule{group.ranks, 1, {}};
  if (group.ranks == 1) return schedule;
  std::vector<Edge> edges;
  for (int rank = 1; rank < group.ranks; ++rank) edges.push_back({rank, 0, 0, 1, 0, 0});
  schedule.phases.push_back(one_round(std::move(edges), 1, OnReceive::reduce));
  return schedule;
}

Schedule flat_broadcast(const Group& group) {
  check_group(group);
  Schedule schedule{group.ranks, 1, {}};
  if (group.ranks == 1) return schedule;
  std::vector<Edge> edges;
  for (int rank = 1; rank < group.ranks; ++rank) edges.push_back({0, rank, 0, 1, 0, 0});
  schedule.phases.push_back(one_round(std::move(edges), 1, OnReceive::copy));
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
    schedule.phases.push_back(one_round(std::move(edges), 1, OnReceive::reduce));
  }
  return schedule;
}

Schedule binomial_broadcast(const Group& group) {
  Schedule schedule = binomial_reduce(group);
  std::reverse(schedule.phases.begin(), schedule.phases.end());
  for (Phase& phase : schedule.phases) {
    std::vector<Edge> edges = *phase.edges;
    for (Edge& edge : edges) std::swap(edge.source, edge.target);
    phase = one_round(std::move(edges), 1, OnReceive::copy);
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
    edges.reserve(p);
    for (int rank = 0; rank < p; ++rank) {
      const int target = (rank + round) % p;
      edges.push_back({rank, target, rank * p + target, 1, 0, 0});
    }
    schedule.phases.push_back(one_round(std::move(edges), p * p, OnReceive::copy));
  }
  return schedule;
}

namespace {

/// An in-order binary tree: `parent[r]` (-1 at the root) and `height[r]`, rounds from the deepest leaf below
/// r.
struct InOrderTree {
  std::vector<int> parent, height;
};

int grow(InOrderTree& tree, int low, int high, int parent) {  // ranks low .. high-1; returns their root
  if (low >= high) return -1;
  int reach =
      1;  // the root of a left-complete tree sits at a power of two, so that leaves are every other rank
  while (2 * reach <= high - low) reach *= 2;
  const int root = low + reach - 1;
  tree.parent[root] = parent;
  for (const int child : {grow(tree, low, root, root), grow(tree, root + 1, high, root)}) {
    if (child >= 0) tree.height[root] = std::max(tree.height[root], tree.height[child] + 1);
  }
  return root;
}

InOrderTree in_order_tree(int ranks) {
  InOrderTree tree{std::vector<int>(ranks, -1), std::vector<int>(ranks, 0)};
  grow(tree, 0, ranks, -1);
  return tree;
}

/// Edges of both trees towards the root (`up`) or away from it. The second tree is the first with every rank
/// shifted by one (mirrored for an even number of ranks), so that the inner ranks of one are leaves of the
/// other.
std::vector<Edge> tree_edges(const InOrderTree& tree, int pieces, bool up) {
  const int ranks = tree.parent.size();
  const int depth = *std::max_element(tree.height.begin(), tree.height.end());
  std::vector<Edge> edges;
  for (int second = 0; second < 2; ++second) {
    const auto name = [&](int rank) {
      if (second == 0) return rank;
      return ranks % 2 == 0 ? ranks - 1 - rank : (rank + 1) % ranks;
    };
    for (int rank = 0; rank < ranks; ++rank) {
      const int parent = tree.parent[rank];
      if (parent < 0) continue;
      const int own = tree.height[rank], above = tree.height[parent];
      Edge edge{name(up ? rank : parent), name(up ? parent : rank), 0, 1, second * pieces, 0};
      edge.delay = up ? own : depth - above;
      edges.push_back(edge);
    }
  }
  return edges;
}

}  // namespace

Schedule double_tree_all_reduce(const Group& group, int pieces) {
  check_group(group);
  if (pieces < 1) throw std::invalid_argument("a tree pipeline needs pieces >= 1");
  Schedule schedule{group.ranks, 2 * pieces, {}};
  if (group.ranks == 1) return schedule;
  const InOrderTree tree = in_order_tree(group.ranks);
  const int depth = *std::max_element(tree.height.begin(), tree.height.end());
  for (const bool up : {true, false}) {
    Phase phase;
    phase.edges = share(tree_edges(tree, pieces, up));
    phase.rounds = depth + pieces - 1;
    phase.active = pieces;
    phase.modulus = pieces;
    phase.step = 1;
    phase.on_receive = up ? OnReceive::reduce : OnReceive::copy;
    schedule.phases.push_back(phase);
  }
  return schedule;
}

}  // namespace stepcast
