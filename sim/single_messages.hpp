#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "sim/usage.hpp"
#include "strategies/plan.hpp"

namespace stepcast {

/// Messages that workers send, or loads of their input, each by itself: nobody else waits for one.
struct SingleMessages {
  std::shared_ptr<const Schedule> schedule;
  std::vector<int> ranks;  ///< of the plan, one each of the schedule; -1: the storage
  Placement placement;
};

/// @param all  of all ranks of the plan
/// @param ranks  of the plan; -1: the storage
Placement placement_of(const Placement& all, const std::vector<int>& ranks);

/// From every member of a role to a member of another.
SingleMessages channel_messages(const Plan& plan, const Placement& all, const std::pair<int, int>& channel);

/// Of members `first` .. `first + count - 1` of a role.
SingleMessages loads_of(const Role& role, int first, int count, const Placement& all);

/// All of a plan's.
std::vector<SingleMessages> single_messages(const Plan& plan, const Placement& all);

}  // namespace stepcast
