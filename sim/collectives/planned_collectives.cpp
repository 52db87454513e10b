#include "sim/collectives/planned_collectives.hpp"

#include <algorithm>

#include "core/expects.hpp"
#include "sim/patterns/point_to_point_schedules.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

PlannedCollectives::PlannedCollectives(const CollectiveSchedules& schedules, ComputeBudget budget)
    : schedules_(schedules), patterns_(schedules.simulation().bandwidths) {
  folding_ = chosen_folding(schedules.load(), budget, [&] { return schedules.workers_are_symmetric(); });
  join_groups();
  fidelity_ = choose_fidelity(traffic(), budget);
  add_patterns();
  if (plan().load_data) add_loads();
  if (!plan().asynchronous && folding_.folds) add_channels();
}

/// Groups of folded ranks are simulated as one pattern.
void PlannedCollectives::join_groups() {
  const auto folded = folded_ranks(plan());
  for (const Communicator& communicator : plan().communicators) {
    const bool any = std::ranges::any_of(communicator.ranks, [&](RankId rank) { return folded[rank]; });
    joint_.push_back(any && folding_.folds);
  }
}

CollectiveLoad PlannedCollectives::traffic() const {
  CollectiveLoad traffic = schedules_.load();
  traffic.folds = folding_.folds;
  traffic.joint = std::ranges::all_of(traffic.collectives, [&](const CollectiveLoad::One& one) {
    return traffic.groups(one) == 1 || joint(one.communicator);
  });
  return traffic;
}

LinkOptions PlannedCollectives::link_options() const {
  LinkOptions options{fidelity_.fidelity, fidelity_.link_sharing};
  options.patterns_only = plan().channels.empty() && !plan().asynchronous && !plan().assigns_work_by_message;
  options.one_at_a_time =
      std::ranges::all_of(plan().communicators, [](const Communicator& one) { return one.in_flight == 1; });
  return options;
}

bool PlannedCollectives::may_be_inaccurate() const {
  if (simulation().fidelity != Fidelity::automatic || plan().asynchronous) return false;
  const bool rough_folding = folding_.accuracy == Accuracy::rough && simulation().fold == Folding::automatic;
  return fidelity_.accuracy == Accuracy::rough || rough_folding;
}

std::vector<PatternId> PlannedCollectives::patterns_of(const Collective& collective,
                                                       const CollectiveSchedules::Chosen& chosen) {
  if (joint(collective.communicator)) return {patterns_.add(schedules_.patterns().pattern(chosen.pattern))};
  const Communicator& communicator = communicator_of(plan(), collective);
  std::vector<PatternId> patterns;
  for (int group = 0; group < communicator.groups(); ++group)
    patterns.push_back(patterns_.add(chosen.schedule, schedules_.placement(communicator, group, 1)));
  return patterns;
}

void PlannedCollectives::add_patterns() {
  std::map<PatternId, std::vector<PatternId>> added;  // by the pattern of all groups
  std::size_t next_known = 0;
  for (std::size_t i = 0; i < plan().collectives.size(); ++i) {
    const Collective& collective = plan().collectives[i];
    const CollectiveSchedules::Chosen& chosen = schedules_[CollectiveId(i)];
    collectives_.emplace_back();
    if (chosen.schedule == nullptr) continue;
    auto& patterns = added[chosen.pattern];
    if (patterns.empty()) patterns = patterns_of(collective, chosen);
    collectives_.back() = patterns;
    const double sampled = fidelity_.seconds.empty() ? 0 : fidelity_.seconds[next_known++];
    if (chosen.known) {
      for (const PatternId pattern : patterns)
        patterns_.set_known(pattern, collective.buffer.size, {chosen.seconds, true});
    } else if (!fidelity_.seconds.empty()) {
      patterns_.set_known(patterns.front(), collective.buffer.size, {sampled, false});
    }
  }
}

void PlannedCollectives::add_loads() {
  for (std::size_t i = 0; i < plan().roles.size(); ++i) {
    const Role& role = plan().roles[i];
    if (!role.training) continue;
    const int programs = folding_.folds ? 1 : role.members;
    for (int member = 0; member < programs; ++member) {
      SingleMessages loads = loads_of(role, member, role.members / programs, schedules_.placement());
      loads_[{RoleId(i), member}] = patterns_.add(std::move(loads.schedule), std::move(loads.placement));
    }
  }
}

void PlannedCollectives::add_channels() {
  Placement placement = schedules_.placement();
  if (!placement.platform->local_program_costs.empty()) {
    auto of_programs = std::make_unique<Platform>(*placement.platform);
    of_programs->local_message_costs = of_programs->local_program_costs;
    of_programs_ = std::move(of_programs);
    placement.platform = of_programs_.get();
  }
  for (const auto& channel : plan().channels) {
    SingleMessages messages = channel_messages(plan(), placement, channel);
    channels_[channel] = patterns_.add(std::move(messages.schedule), std::move(messages.placement));
  }
}

PatternId PlannedCollectives::pattern(CollectiveId collective, int group) const {
  expects(collective.index() < collectives_.size(), "a collective of the plan");
  const auto& patterns = collectives_[collective.index()];
  expects(patterns.empty() || static_cast<std::size_t>(group) < patterns.size(),
          "a group of its communicator");
  return patterns.empty() ? PatternId() : patterns[group];
}

PatternId PlannedCollectives::load_pattern(RoleId role, int member) const {
  const auto found = loads_.find({role, member});
  return found == loads_.end() ? PatternId() : found->second;
}

PatternId PlannedCollectives::channel_pattern(RoleId from, RoleId to) const {
  const auto found = channels_.find({from, to});
  return found == channels_.end() ? PatternId() : found->second;
}

}  // namespace stepcast
