#pragma once

#include "sim/fidelity/cost_estimate.hpp"

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
/// (sim/fidelity/folding_rule.hpp) are simulated message by message, and so are asynchronous plans; those of
/// more than 64 roles and without collectives use BottleneckSharing: "message, shared".
ChosenFidelity choose_fidelity(const CollectiveLoad& traffic, ComputeBudget budget);

}  // namespace stepcast
