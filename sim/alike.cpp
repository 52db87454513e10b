#include "sim/alike.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>

#include "core/zeroed_array.hpp"

namespace stepcast {
namespace {

constexpr int kMostRounds = 100;

using Colour = std::uint64_t;

Colour mixed(Colour colour, Colour value) {
  // splitmix64's finalizer (S. Vigna), enough to tell colours apart
  Colour z = colour * 0x9E3779B97F4A7C15U + value;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

/// Latencies are sums, whose last bits depend on their order.
Colour of_seconds(double seconds) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(seconds));
}

/// Ends of transfers are points: the ranks of the plan, then the storage, then the places of each
/// collective's groups, which have rounds of their own. A group joins places and ranks.
class Colours {
 public:
  explicit Colours(const Traffic& traffic) : traffic_(traffic), plan_(*traffic.simulation.plan) {
    points_.assign(plan_.endpoints.size() + 1, 0);
    for (const Role& role : plan_.roles) {
      for (int i = 0; i < role.members; ++i)
        points_[static_cast<std::size_t>(role.first_rank + i)] = static_cast<Colour>(role.first_rank + 1);
    }
    for (const Traffic::One& one : traffic.collectives) add(one);
  }

  void add(const SingleMessages& singles) {
    std::vector<std::size_t> points;
    for (const int rank : singles.ranks)
      points.push_back(rank < 0 ? plan_.endpoints.size() : static_cast<std::size_t>(rank));
    add_transfers(*singles.schedule, singles.placement, points);
  }

  /// Whether the workers of every role keep one colour to the end.
  bool stay_alike() {
    std::size_t before = 0;
    for (int round = 0; round < kMostRounds; ++round) {
      refine();
      if (!roles_alike()) return false;
      const std::size_t now = different();
      if (now == before) return true;
      before = now;
    }
    return false;
  }

 private:
  struct Transfer {
    Colour what;
    std::size_t source, target;
    std::size_t first_link, last_link;  ///< in hops_
  };

  void add(const Traffic::One& one) {
    if (!known_.insert(one.pattern).second) return;
    const Communicator& communicator = plan_.communicators[static_cast<std::size_t>(one.communicator)];
    const auto [first_group, is_new] = first_group_.try_emplace(one.communicator, groups_.size());
    if (is_new) {
      groups_.resize(groups_.size() + static_cast<std::size_t>(communicator.groups()),
                     static_cast<Colour>(one.communicator));
    }
    std::vector<std::size_t> points;
    for (std::size_t i = 0; i < communicator.ranks.size(); ++i) {
      const std::size_t group = first_group->second + i / static_cast<std::size_t>(communicator.size);
      points.push_back(points_.size());
      joined_.push_back({points_.size(), group});
      points_.push_back(1);
      if (is_new) joined_.push_back({static_cast<std::size_t>(communicator.ranks[i]), group});
    }
    add_transfers(*one.pattern->schedule, one.pattern->placement, points);
  }

  /// Phases of the same edges move the same shares of another size: nothing more to tell apart.
  void add_transfers(const Schedule& schedule, const Placement& placement,
                     const std::vector<std::size_t>& points) {
    std::set<const void*> known;
    for (const Phase& phase : schedule.phases) {
      if (!known.insert(phase.edges.get()).second) continue;
      ++kinds_;
      for (const Edge& edge : *phase.edges) {
        const auto source = static_cast<std::size_t>(edge.source);
        const auto target = static_cast<std::size_t>(edge.target);
        const std::size_t first = hops_.size();
        placement.topology->route(placement.endpoints[source], placement.endpoints[target], hops_);
        const std::vector<int> route(hops_.begin() + static_cast<std::ptrdiff_t>(first), hops_.end());
        Colour what = mixed(kinds_, static_cast<Colour>(kind_of(edge, placement)));
        what = mixed(mixed(what, static_cast<Colour>(edge.chunks)), static_cast<Colour>(edge.delay));
        what = mixed(what, of_seconds(placement.topology->latency_of(route).value));
        transfers_.push_back({what, points[source], points[target], first, hops_.size()});
      }
    }
  }

  /// Numbers links from 0, with their bandwidths as colours.
  void number_links() {
    const LinkBandwidths& bandwidths = traffic_.simulation.bandwidths;
    ZeroedArray<int> numbers(static_cast<std::size_t>(bandwidths.size()));  // from 1; 0: none yet
    for (int& hop : hops_) {
      int& number = numbers[static_cast<std::size_t>(hop)];
      if (number == 0) {
        links_.push_back(std::bit_cast<Colour>(bandwidths[hop].value));
        number = static_cast<int>(links_.size());
      }
      hop = number - 1;
    }
  }

  void refine() {
    if (links_.empty()) number_links();
    std::vector<Colour> at_point(points_.size(), 0), at_link(links_.size(), 0), in_group(groups_.size(), 0);
    for (const Transfer& one : transfers_) {
      Colour colour = mixed(mixed(one.what, points_[one.source]), points_[one.target]);
      for (std::size_t i = one.first_link; i < one.last_link; ++i)
        colour = mixed(colour, links_[static_cast<std::size_t>(hops_[i])]);
      at_point[one.source] += mixed(colour, 1);
      at_point[one.target] += mixed(colour, 2);
      for (std::size_t i = one.first_link; i < one.last_link; ++i)
        at_link[static_cast<std::size_t>(hops_[i])] += mixed(colour, 3);
    }
    for (const auto& [point, group] : joined_) in_group[group] += mixed(points_[point], 4);
    for (const auto& [point, group] : joined_) at_point[point] += mixed(groups_[group], 5);
    take(at_point, points_);
    take(at_link, links_);
    take(in_group, groups_);
  }

  static void take(const std::vector<Colour>& seen, std::vector<Colour>& colours) {
    for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = mixed(colours[i], seen[i]);
  }

  bool roles_alike() const {
    return std::ranges::all_of(plan_.roles, [&](const Role& role) {
      const auto first = points_.begin() + role.first_rank;
      return std::all_of(first, first + role.members, [&](Colour colour) { return colour == *first; });
    });
  }

  std::size_t different() const {
    std::size_t count = 0;
    for (const auto* colours : {&points_, &links_, &groups_}) {
      std::vector<Colour> sorted = *colours;
      std::ranges::sort(sorted);
      count += static_cast<std::size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
    }
    return count;
  }

  const Traffic& traffic_;
  const Plan& plan_;
  std::vector<Colour> points_, links_, groups_;
  std::vector<Transfer> transfers_;
  std::vector<int> hops_;                                    ///< links of all transfers
  std::vector<std::pair<std::size_t, std::size_t>> joined_;  ///< points and their groups
  std::set<const Pattern*> known_;
  std::map<int, std::size_t> first_group_;  ///< of each communicator
  Colour kinds_ = 0;
};

}  // namespace

bool workers_alike(const Traffic& traffic, const std::vector<SingleMessages>& singles) {
  Colours colours(traffic);
  for (const SingleMessages& one : singles) colours.add(one);
  return colours.stay_alike();
}

}  // namespace stepcast
