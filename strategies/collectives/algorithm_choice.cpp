#include "strategies/collectives/algorithm_choice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace stepcast {
namespace {

/// Row of a library's decision table: the algorithm below this number of ranks and this number of bytes. The
/// first row that matches counts.
struct Decision {
  int ranks;
  double bytes;
  Algorithm algorithm;
};

constexpr int kAny = std::numeric_limits<int>::max();
constexpr double kMore = std::numeric_limits<double>::infinity();
constexpr auto kRing = Algorithm::ring, kHalving = Algorithm::halving_doubling,
               kDoubling = Algorithm::recursive_doubling, kTree = Algorithm::binomial_tree;
constexpr std::array kOpenMpi{
    Decision{4, 8, kRing},          Decision{4, 4096, kDoubling},     Decision{4, 8192, kRing},
    Decision{4, 16384, kDoubling},  Decision{4, 262144, kRing},       Decision{4, kMore, kHalving},
    Decision{8, 16, kRing},         Decision{16, 8192, kDoubling},    Decision{16, kMore, kHalving},
    Decision{32, 64, kRing},        Decision{32, 4096, kDoubling},    Decision{32, kMore, kHalving},
    Decision{64, 128, kRing},       Decision{64, kMore, kHalving},    Decision{128, 262144, kDoubling},
    Decision{128, kMore, kHalving}, Decision{256, 131072, kTree},     Decision{256, 262144, kDoubling},
    Decision{256, kMore, kHalving}, Decision{512, 4096, kTree},       Decision{512, kMore, kHalving},
    Decision{4096, 2048, kTree},    Decision{2048, 16384, kDoubling}, Decision{2048, kMore, kHalving},
    Decision{4096, 4096, kRing},    Decision{4096, 16384, kDoubling}, Decision{4096, kMore, kHalving},
    Decision{kAny, 2048, kTree},    Decision{kAny, 16384, kRing},     Decision{kAny, 32768, kDoubling},
    Decision{kAny, kMore, kRing}};

/// Bytes below which a buffer has at most as many elements of fp32, the unit of LBANN's limits.
constexpr double up_to(double elements) {
  return 4 * elements + 1;
}

constexpr std::array kAluminum{Decision{64, kMore, kRing},
                               Decision{kAny, up_to(512), kDoubling},
                               Decision{128, up_to(4096), kHalving},
                               Decision{128, kMore, kRing},
                               Decision{256, up_to(8192), kHalving},
                               Decision{256, kMore, kRing},
                               Decision{512, up_to(32768), kHalving},
                               Decision{512, kMore, kRing},
                               Decision{2048, up_to(65536), kHalving},
                               Decision{2048, kMore, kRing},
                               Decision{kAny, up_to(262144), kHalving},
                               Decision{kAny, kMore, kRing}};

}  // namespace

const Words<Algorithm>& algorithm_words() {
  static const Words<Algorithm> words{{"automatic", Algorithm::automatic},
                                      {"ring", Algorithm::ring},
                                      {"halving_doubling", Algorithm::halving_doubling},
                                      {"recursive_doubling", Algorithm::recursive_doubling},
                                      {"binomial_tree", Algorithm::binomial_tree},
                                      {"double_tree", Algorithm::double_tree},
                                      {"hierarchical", Algorithm::hierarchical},
                                      {"mpi", Algorithm::mpi},
                                      {"aluminum", Algorithm::aluminum}};
  return words;
}

const Words<LocalPart>& local_part_words() {
  static const Words<LocalPart> words{{"reduce_scatter", LocalPart::reduce_scatter},
                                      {"leader", LocalPart::leader},
                                      {"flat", LocalPart::flat}};
  return words;
}

const Words<NetworkPart>& network_part_words() {
  static const Words<NetworkPart> words{{"ring", NetworkPart::ring},
                                        {"halving_doubling", NetworkPart::halving_doubling},
                                        {"binomial_tree", NetworkPart::binomial_tree}};
  return words;
}

const std::vector<std::string>& algorithm_names() {
  return algorithm_words().names();
}

const std::vector<std::string>& local_part_names() {
  return local_part_words().names();
}

const std::vector<std::string>& network_part_names() {
  return network_part_words().names();
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
      case Algorithm::mpi:
      case Algorithm::aluminum:
        return *all_reduce_schedule(resolved_choice(choice, group.ranks, buffer), group, buffer);
      case Algorithm::automatic:
        break;
    }
    throw std::invalid_argument("automatic has no schedule of its own");
  };
  return std::make_shared<const Schedule>(build());
}

AllReduceChoice resolved_choice(const AllReduceChoice& choice, int ranks, Bytes buffer) {
  const auto decided = [&](const auto& table) {
    return std::ranges::find_if(
               table, [&](const Decision& one) { return ranks < one.ranks && buffer.value < one.bytes; })
        ->algorithm;
  };
  if (choice.algorithm == Algorithm::mpi) return {.algorithm = decided(kOpenMpi)};
  AllReduceChoice resolved = choice;
  if (choice.algorithm == Algorithm::aluminum) resolved.algorithm = decided(kAluminum);
  return resolved;
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
