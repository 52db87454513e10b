#pragma once

#include <functional>
#include <vector>

#include "sim/fidelity/cost_estimate.hpp"
#include "sim/patterns/point_to_point_schedules.hpp"

namespace stepcast {

/// Rule for `fold: automatic`. Workers are folded if that is exact: the workers of a role are in one group of
/// each communicator and exchange no single messages, or workers_symmetric proves them symmetric. Otherwise,
/// if the user asks for every message or simulating every message is worth trying, each worker gets its own
/// program. The remaining cases are folded with Accuracy::rough: groups of a communicator that differ then
/// wait for each other. The fidelities fluid and coupled always fold when the user asks for them.
/// @param single_messages  returns the messages and loads of single workers; called only if they matter
UsedFolding chosen_folding(const CollectiveLoad& traffic, ComputeBudget budget,
                           const std::function<std::vector<SingleMessages>()>& single_messages);

}  // namespace stepcast
