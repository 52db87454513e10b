#include <algorithm>
#include <bit>
#include <cstdint>
#include <map>
#include <set>

#include "core/memory.hpp"
#include "core/random.hpp"
#include "sim/fidelity/fidelity_rule.hpp"
#include "sim/patterns/point_to_point_schedules.hpp"

namespace stepcast {
namespace {

constexpr int kMaxRounds = 100;

using Colour = std::uint64_t;

/// The colour of a latency, rounded to float: latencies are sums, whose last bits depend on the order of
/// terms.
Colour of_seconds(double seconds) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(seconds));
}

/// Colour refinement of the workers of a plan (see workers_symmetric). The ends of transfers are points: the
/// ranks of the plan, then the storage, then one point per collective and rank, because each collective has
/// its own rounds. A group connects these points with the ranks.
class ColourRefinement {
 public:
  explicit ColourRefinement(const CollectiveLoad& traffic)
      : traffic_(traffic), plan_(*traffic.simulation.plan) {
    points_.assign(plan_.endpoints.size() + 1, 0);
    for (const Role& role : plan_.roles) {
      for (int i = 0; i < role.members; ++i) points_[role.rank(i).index()] = role.first_rank.value + 1;
    }
    for (const CollectiveLoad::One& one : traffic.collectives) add(one);
  }

  void add(const SingleMessages& single_messages) {
    std::vector<std::size_t> points;
    for (const RankId rank : single_messages.ranks)
      points.push_back(rank.exists() ? rank.index() : plan_.endpoints.size());
    add_transfers(*single_messages.schedule, single_messages.placement, points);
  }

  /// True if the workers of every role have one colour when the refinement changes nothing any more.
  bool roles_stay_uniform() {
    std::size_t before = 0;
    for (int round = 0; round < kMaxRounds; ++round) {
      refine();
      if (!roles_are_uniform()) return false;
      const std::size_t now = colour_count();
      if (now == before) return true;
      before = now;
    }
    return false;
  }

 private:
  struct Transfer {
    Colour kind;
    std::size_t source, target;
    std::size_t first_link, last_link;  ///< in hops_
  };

  void add(const CollectiveLoad::One& one) {
    if (!known_.insert(one.pattern).second) return;
    const Communicator& communicator = plan_.communicators[one.communicator.index()];
    const auto [first_group, is_new] = first_group_.try_emplace(one.communicator, groups_.size());
    if (is_new) {
      groups_.resize(groups_.size() + communicator.groups(), one.communicator.value);
    }
    std::vector<std::size_t> points;
    for (std::size_t i = 0; i < communicator.ranks.size(); ++i) {
      const std::size_t group = first_group->second + i / communicator.size;
      points.push_back(points_.size());
      memberships_.push_back({points_.size(), group});
      points_.push_back(1);
      if (is_new) memberships_.push_back({communicator.ranks[i].index(), group});
    }
    add_transfers(*one.pattern->schedule, one.pattern->placement, points);
  }

  /// Adds the transfers of a schedule. Phases with the same edges differ in size only, which separates no
  /// workers, so one of them is enough.
  void add_transfers(const Schedule& schedule, const Placement& placement,
                     const std::vector<std::size_t>& points) {
    std::set<const void*> known;
    for (const Phase& phase : schedule.phases) {
      if (!known.insert(phase.edges.get()).second) continue;
      ++kinds_;
      for (const Edge& edge : *phase.edges) {
        const std::size_t source = edge.source;
        const std::size_t target = edge.target;
        const std::size_t first = hops_.size();
        placement.topology->route(placement.endpoints[source], placement.endpoints[target], hops_);
        const std::vector<int> route(hops_.begin() + first, hops_.end());
        Colour kind = mixed_hash(kinds_, static_cast<Colour>(kind_of(edge, placement)));
        kind = mixed_hash(mixed_hash(kind, edge.chunks), edge.delay);
        kind = mixed_hash(kind, of_seconds(placement.topology->latency_of(route).value));
        transfers_.push_back({kind, points[source], points[target], first, hops_.size()});
      }
    }
  }

  /// Numbers the used links from 0; the initial colour of a link is its bandwidth.
  void number_links() {
    const LinkBandwidths& bandwidths = traffic_.simulation.bandwidths;
    ZeroedArray<int> numbers(bandwidths.size());  // plus one; 0 if not numbered yet
    for (int& hop : hops_) {
      int& number = numbers[hop];
      if (number == 0) {
        links_.push_back(std::bit_cast<Colour>(bandwidths[hop].value));
        number = links_.size();
      }
      hop = number - 1;
    }
  }

  void refine() {
    if (links_.empty()) number_links();
    std::vector<Colour> at_point(points_.size(), 0), at_link(links_.size(), 0), in_group(groups_.size(), 0);
    for (const Transfer& one : transfers_) {
      Colour colour = mixed_hash(mixed_hash(one.kind, points_[one.source]), points_[one.target]);
      for (std::size_t i = one.first_link; i < one.last_link; ++i)
        colour = mixed_hash(colour, links_[hops_[i]]);
      at_point[one.source] += mixed_hash(colour, 1);
      at_point[one.target] += mixed_hash(colour, 2);
      for (std::size_t i = one.first_link; i < one.last_link; ++i) at_link[hops_[i]] += mixed_hash(colour, 3);
    }
    for (const auto& [point, group] : memberships_) in_group[group] += mixed_hash(points_[point], 4);
    for (const auto& [point, group] : memberships_) at_point[point] += mixed_hash(groups_[group], 5);
    mix_in(at_point, points_);
    mix_in(at_link, links_);
    mix_in(in_group, groups_);
  }

  static void mix_in(const std::vector<Colour>& seen, std::vector<Colour>& colours) {
    for (std::size_t i = 0; i < colours.size(); ++i) colours[i] = mixed_hash(colours[i], seen[i]);
  }

  bool roles_are_uniform() const {
    return std::ranges::all_of(plan_.roles, [&](const Role& role) {
      const auto first = points_.begin() + role.first_rank.value;
      return std::all_of(first, first + role.members, [&](Colour colour) { return colour == *first; });
    });
  }

  std::size_t colour_count() const {
    std::size_t count = 0;
    for (const auto* colours : {&points_, &links_, &groups_}) {
      std::vector<Colour> sorted = *colours;
      std::ranges::sort(sorted);
      count += std::unique(sorted.begin(), sorted.end()) - sorted.begin();
    }
    return count;
  }

  const CollectiveLoad& traffic_;
  const Plan& plan_;
  std::vector<Colour> points_, links_, groups_;
  std::vector<Transfer> transfers_;
  std::vector<int> hops_;                                         ///< links of all transfers
  std::vector<std::pair<std::size_t, std::size_t>> memberships_;  ///< points and their groups
  std::set<const Pattern*> known_;
  std::map<CommunicatorId, std::size_t> first_group_;  ///< of each communicator
  Colour kinds_ = 0;
};

}  // namespace

bool workers_symmetric(const CollectiveLoad& traffic, const std::vector<SingleMessages>& single_messages) {
  ColourRefinement refinement(traffic);
  for (const SingleMessages& one : single_messages) refinement.add(one);
  return refinement.roles_stay_uniform();
}

namespace {

/// True if workers of a role form several groups of a communicator, exchange single messages or load input,
/// each over a route of its own.
bool may_differ(const CollectiveLoad& traffic) {
  const Plan& plan = *traffic.simulation.plan;
  const auto many = [&](RoleId role) { return plan.roles[role.index()].members > 1; };
  if (plan.load_data && std::ranges::any_of(plan.roles, [](const Role& role) { return role.members > 1; }))
    return true;
  if (std::ranges::any_of(plan.channels,
                          [&](const auto& one) { return many(one.first) && many(one.second); }))
    return true;
  const auto folded = folded_ranks(plan);
  return std::ranges::any_of(traffic.collectives, [&](const CollectiveLoad::One& one) {
    const Communicator& all = plan.communicators[one.communicator.index()];
    return all.groups() > 1 && std::ranges::any_of(all.ranks, [&](RankId rank) { return folded[rank]; });
  });
}

}  // namespace

bool groups_have_clocks(const CollectiveLoad& traffic) {
  const Simulation& simulation = traffic.simulation;
  const Plan& plan = *simulation.plan;
  if (simulation.fold == Folding::never || simulation.noise.is_none() || plan.asynchronous) return false;
  // A timeline, a log and values in memory need the programs themselves.
  if (!simulation.timeline_ranks.empty() || simulation.logs_programs || !simulation.memories.empty())
    return false;
  if (plan.roles.size() != 1 || !plan.channels.empty() || plan.load_data || plan.assigns_work_by_message)
    return false;
  const auto in_order = [&](const Communicator& one) {
    return std::ssize(one.ranks) == plan.roles.front().members &&
           (one.in_flight == 1 || one.in_flight >= one.streams);
  };
  return std::ranges::all_of(plan.communicators, in_order) &&
         std::ranges::all_of(traffic.collectives, &CollectiveLoad::One::modelled) && may_differ(traffic);
}

UsedFolding chosen_folding(const CollectiveLoad& traffic, ComputeBudget budget,
                           const std::function<bool()>& symmetric) {
  const Simulation& simulation = traffic.simulation;
  if (simulation.fold == Folding::never) return {.folds = false};
  if (simulation.plan->asynchronous || !may_differ(traffic)) return {.folds = true};
  if (simulation.noise.is_none() && symmetric()) return {.folds = true};
  if (groups_have_clocks(traffic)) return {.folds = true};
  if (simulation.fold == Folding::automatic && simulation.fidelity == Fidelity::message)
    return {.folds = false};
  const bool cheap = simulation.fidelity == Fidelity::coupled || simulation.fidelity == Fidelity::fluid;
  if (simulation.fold == Folding::automatic && !cheap && worth_trying(traffic, budget))
    return {.folds = false};
  return {true, Accuracy::rough};
}

}  // namespace stepcast
