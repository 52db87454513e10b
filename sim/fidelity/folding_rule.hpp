#pragma once

#include <functional>
#include <vector>

#include "sim/fidelity/cost_estimate.hpp"
#include "sim/patterns/point_to_point_schedules.hpp"

namespace stepcast {

/// True if the workers of each role are proven symmetric: all of them do everything at the same dates, so one
/// program may stand for them.
///
/// The proof is colour refinement. Workers, groups, transfers and links start with a colour given by their
/// own properties; two of the same colour are separated when their neighbours' colours differ, until nothing
/// changes. With max-min fair sharing all flows of a colour have the same rate, because the sharing is unique
/// and averaging the rates over a colour gives a max-min sharing too; so they end together. False if jitter
/// makes workers differ, or if 100 rounds of refinement prove nothing.
bool workers_symmetric(const CollectiveLoad& traffic, const std::vector<SingleMessages>& single_messages);

/// Rule for `fold: automatic`. Workers are folded if that is exact: the workers of a role are in one group of
/// each communicator and exchange no single messages, or workers_symmetric proves them symmetric. Otherwise,
/// if the user asks for every message or simulating every message is worth trying, each worker gets its own
/// program. The remaining cases are folded with Accuracy::rough: groups of a communicator that differ then
/// wait for each other. The fidelities fluid and coupled always fold when the user asks for them.
/// @param single_messages  returns the messages and loads of single workers; called only if they matter
UsedFolding chosen_folding(const CollectiveLoad& traffic, ComputeBudget budget,
                           const std::function<std::vector<SingleMessages>()>& single_messages);

}  // namespace stepcast
