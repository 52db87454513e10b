#pragma once

#include <string>
#include <vector>

#include "strategies/options/strategy.hpp"

namespace stepcast {

/// All strategies, in the order in which `stepcast show strategies` prints them.
const std::vector<Strategy>& strategies();
std::vector<std::string> strategy_names();  ///< their kinds, in the same order

}  // namespace stepcast
