#pragma once

#include <utility>
#include <vector>

#include "strategies/plan.hpp"

namespace stepcast {

/// Ranks of which the first sends messages to the second, in ascending order: the plan's channels, member by
/// member, and where it lists none but is asynchronous, from those that train to those that serve and back.
std::vector<std::pair<int, int>> message_pairs(const Plan& plan);

}  // namespace stepcast
