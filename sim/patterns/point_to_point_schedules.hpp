#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sim/network/schedule_link_load.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// A schedule repeated for `groups` groups side by side: the ranks of group g follow those of group g - 1.
std::shared_ptr<const Schedule> replicated(const std::shared_ptr<const Schedule>& schedule, int groups);

/// True for a rank whose role has several members, so that it may share a program with them.
IdTable<RankId, bool> folded_ranks(const Plan& plan);

/// Messages that workers send, or loads of their input. Each is independent: no other message waits for it.
struct SingleMessages {
  std::shared_ptr<const Schedule> schedule;
  std::vector<RankId> ranks;  ///< by position in the schedule: its rank in the plan; none: the storage
  Placement placement;
};

/// The placement of some ranks.
/// @param all    placement of all ranks of the plan
/// @param ranks  ranks of the plan; none stands for the storage
Placement placement_of(const Placement& all, const std::vector<RankId>& ranks);

/// Messages from every member of the first role of `channel` to the matching member of the second.
SingleMessages channel_messages(const Plan& plan, const Placement& all,
                                const std::pair<RoleId, RoleId>& channel);

/// Input loads of members `first` .. `first + count - 1` of a role.
SingleMessages loads_of(const Role& role, int first, int count, const Placement& all);

/// All channel messages and input loads of a plan.
std::vector<SingleMessages> single_messages(const Plan& plan, const Placement& all);

}  // namespace stepcast
