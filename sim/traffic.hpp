#pragma once

#include <memory>
#include <vector>

#include "strategies/planned_schedule.hpp"

namespace stepcast {

/// The same schedule in `groups` groups side by side: ranks of group g come after those of group g - 1.
std::shared_ptr<const Schedule> replicated(const std::shared_ptr<const Schedule>& schedule, int groups);

/// `workers` ranks each read the buffer from the rank after the last of them.
std::shared_ptr<const Schedule> load_schedule(int workers);

/// Rank i of the sources sends the buffer to rank i of the targets, or to the only one; targets come after
/// sources.
std::shared_ptr<const Schedule> channel_schedule(int sources, int targets);

/// Of each rank of the plan: whether it may share a program with others.
std::vector<bool> folded_ranks(const Plan& plan);

}  // namespace stepcast
