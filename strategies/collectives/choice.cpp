#include "strategies/collectives/choice.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast {

const std::vector<std::string>& algorithm_names() {
  static const std::vector<std::string> names{"automatic",          "ring",          "halving_doubling",
                                              "recursive_doubling", "binomial_tree", "double_tree",
                                              "hierarchical"};
  return names;
}

const std::vector<std::string>& local_part_names() {
  static const std::vector<std::string> names{"reduce_scatter", "leader"};
  return names;
}

const std::vector<std::string>& network_part_names() {
  static const std::vector<std::string> names{"ring", "halving_doubling", "binomial_tree"};
  return names;
}

int tree_pieces(const AllReduceChoice& choice, Bytes buffer) {
  const double pieces = std::ceil(buffer / choice.tree_piece / 2);
  return static_cast<int>(std::clamp(pieces, 1.0, 512.0));
}

std::shared_ptr<const Schedule> all_reduce_schedule(const AllReduceChoice& choice, const Group& group,
                                                    Bytes buffer) {
  const auto build = [&]() -> Schedule {
    switch (choice.algorithm) {
      case Algorithm::ring:
        return ring_all_reduce(group, choice.channels);
      case Algorithm::halving_doubling:
        return halving_doubling_all_reduce(group);
      case Algorithm::recursive_doubling:
        return recursive_doubling_all_reduce(group);
      case Algorithm::binomial_tree:
        return binomial_all_reduce(group);
      case Algorithm::double_tree:
        return double_tree_all_reduce(group, tree_pieces(choice, buffer));
      case Algorithm::hierarchical:
        return hierarchical_all_reduce(group, choice.local, choice.network);
      case Algorithm::automatic:
        break;
    }
    throw std::invalid_argument("automatic is a choice among schedules, not one");
  };
  return std::make_shared<const Schedule>(build());
}

std::vector<AllReduceChoice> candidates(const AllReduceChoice& choice, const Group& group) {
  std::vector<AllReduceChoice> all;
  const auto add = [&](Algorithm algorithm) {
    all.push_back(choice);
    all.back().algorithm = algorithm;
  };
  for (const Algorithm algorithm : {Algorithm::ring, Algorithm::halving_doubling,
                                    Algorithm::recursive_doubling, Algorithm::double_tree}) {
    add(algorithm);
  }
  const bool even = group.ranks_per_node > 1 && group.ranks > group.ranks_per_node &&
                    group.ranks % group.ranks_per_node == 0;
  for (const NetworkPart network : {NetworkPart::ring, NetworkPart::halving_doubling}) {
    if (!even) break;
    add(Algorithm::hierarchical);
    all.back().local = LocalPart::reduce_scatter;
    all.back().network = network;
  }
  return all;
}

}  // namespace stepcast
