#include <algorithm>

#include "strategies/collectives/phases.hpp"

namespace stepcast {
namespace {

/// An in-order binary tree: `parent[r]` (-1 at the root) and `height[r]`, rounds from the deepest leaf below
/// r.
struct Tree {
  std::vector<int> parent, height;
};

int grow(Tree& tree, int low, int high, int parent) {  // ranks low .. high-1; returns their root
  if (low >= high) return -1;
  int reach =
      1;  // the root of a left-complete tree sits at a power of two, so that leaves are every other rank
  while (2 * reach <= high - low) reach *= 2;
  const int root = low + reach - 1;
  const auto r = static_cast<std::size_t>(root);
  tree.parent[r] = parent;
  for (const int child : {grow(tree, low, root, root), grow(tree, root + 1, high, root)}) {
    if (child >= 0)
      tree.height[r] = std::max(tree.height[r], tree.height[static_cast<std::size_t>(child)] + 1);
  }
  return root;
}

Tree in_order_tree(int ranks) {
  Tree tree{std::vector<int>(static_cast<std::size_t>(ranks), -1),
            std::vector<int>(static_cast<std::size_t>(ranks), 0)};
  grow(tree, 0, ranks, -1);
  return tree;
}

/// Edges of both trees towards the root (`up`) or away from it. The second tree is the first with every rank
/// shifted by one (mirrored for an even number of ranks), so that the inner ranks of one are leaves of the
/// other.
std::vector<Edge> tree_edges(const Tree& tree, int pieces, bool up) {
  const int ranks = static_cast<int>(tree.parent.size());
  const int depth = *std::max_element(tree.height.begin(), tree.height.end());
  std::vector<Edge> edges;
  for (int second = 0; second < 2; ++second) {
    const auto name = [&](int rank) {
      if (second == 0) return rank;
      return ranks % 2 == 0 ? ranks - 1 - rank : (rank + 1) % ranks;
    };
    for (int rank = 0; rank < ranks; ++rank) {
      const int parent = tree.parent[static_cast<std::size_t>(rank)];
      if (parent < 0) continue;
      const int own = tree.height[static_cast<std::size_t>(rank)],
                above = tree.height[static_cast<std::size_t>(parent)];
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
  const Tree tree = in_order_tree(group.ranks);
  const int depth = *std::max_element(tree.height.begin(), tree.height.end());
  for (const bool up : {true, false}) {
    Phase phase;
    phase.edges = share(tree_edges(tree, pieces, up));
    phase.rounds = depth + pieces - 1;
    phase.active = pieces;
    phase.modulus = pieces;
    phase.step = 1;
    phase.arrival = up ? Arrival::add : Arrival::replace;
    schedule.phases.push_back(phase);
  }
  return schedule;
}

}  // namespace stepcast
