#pragma once

#include <functional>
#include <vector>

#include "sim/fidelity/cost_estimate.hpp"
#include "sim/patterns/point_to_point_schedules.hpp"

namespace stepcast {

/// Rule for `fidelity: automatic`: the cheapest fidelity that is known to be within 1 % of simulating every
/// message.
///
/// Collectives that never run at the same time: "coupled" if their rounds proceed in lock step or the bounds
/// of their duration leave no room for 1 %; otherwise "message, sampled", which simulates each different
/// collective once, alone, by some of its rounds; if that takes more than about 50 ms, "coupled", provided
/// that all ranks are active in every round. Collectives that run at the same time: "coupled" with segments
/// of one round, if edges of all ranks are active in every round and equally fast. Everything else: every
/// message if that is affordable, and otherwise "coupled, roughly". If rounds make more than 30,000 flows a
/// step, phases are divided into fewer segments, but at least 8; the result then counts as close only if
/// latencies take less than 5 % of the time. Groups with programs of their own
/// (chosen_folding) are simulated message by message, and so are asynchronous plans; those of
/// more than 64 roles and without collectives use BottleneckSharing: "message, shared".
ChosenFidelity choose_fidelity(const CollectiveLoad& traffic, ComputeBudget budget);

/// Rule for `fold: automatic`. Workers are folded if that is exact: the workers of a role are in one group of
/// each communicator and exchange no single messages, or workers_symmetric proves them symmetric. Otherwise,
/// if the user asks for every message or simulating every message is worth trying, each worker gets its own
/// program. The remaining cases are folded with Accuracy::rough: groups of a communicator that differ then
/// wait for each other. The fidelities fluid and coupled always fold when the user asks for them.
/// @param single_messages  returns the messages and loads of single workers; called only if they matter
UsedFolding chosen_folding(const CollectiveLoad& traffic, ComputeBudget budget,
                           const std::function<std::vector<SingleMessages>()>& single_messages);

}  // namespace stepcast
