#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strategies/options/strategy.hpp"

namespace stepcast {

/// All strategies, in the order in which `stepcast show strategies` prints them.
const std::vector<Strategy>& strategies();
/// Adds a strategy of a program that uses the libraries (docs/how-to/use-as-a-library.md). Call it before the
/// first scenario is read. @throws std::invalid_argument if there is a strategy of this kind
void add_strategy(Strategy strategy);
/// The kind that is meant where a training is only said to be data-parallel: replicas that sum gradients.
constexpr const char* kPlainReplicas = "synchronous";
const Strategy* find_strategy(std::string_view kind);  ///< null: there is none
std::vector<std::string> strategy_names();             ///< their kinds, in the same order

}  // namespace stepcast
