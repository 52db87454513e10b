#pragma once

#include <functional>
#include <vector>

#include "sim/fidelity/run_cost.hpp"
#include "sim/patterns/point_to_point_schedules.hpp"
#include "sim/simulation.hpp"

namespace stepcast {

/// Rule for `fidelity: automatic`: the cheapest fidelity that is known to be within 1 % of simulating every
/// message.
///
/// Collectives that never run at the same time as anything else: "coupled" if their rounds proceed in lock
/// step, or if the lower and the upper bound of a step differ by at most 0.3 %; otherwise "message, sampled",
/// which simulates each different collective once, alone, by some of its rounds. Everything else: every
/// message if that is affordable, and otherwise "coupled, roughly". Groups with programs of their own
/// (chosen_folding) and asynchronous plans are simulated message by message. Asynchronous plans of more than
/// 64 roles without collectives use BottleneckSharing where messages would take too long one by one:
/// "message, shared, roughly".
///
/// Rule for `sharing: automatic`: SimGrid shares the links if that is estimated to take at most
/// kSimGridBudgetPerRun, and MaxMinSharing otherwise.
ChosenFidelity choose_fidelity(const CollectiveLoad& traffic, ComputeBudget budget);

/// Rule for `fold: automatic`. Workers are folded if that is exact: the workers of a role are in one group of
/// each communicator, exchange no single messages and load no input, or workers_symmetric proves them
/// symmetric; or NCCL's model gives all durations, and each group waits for its own members. Otherwise, if
/// the user asks for every message or simulating every message is worth trying, each worker gets its own
/// program. The remaining cases are folded with Accuracy::rough: groups of a communicator that differ then
/// wait for each other. The fidelities fluid and coupled always fold when the user asks for them.
/// @param symmetric  returns workers_symmetric; called only if it matters
UsedFolding chosen_folding(const CollectiveLoad& traffic, ComputeBudget budget,
                           const std::function<bool()>& symmetric);

/// True if a run with noise whose workers form several groups is one of run_by_clocks: no operation can delay
/// another but by the order of the program, because there is one role, and NCCL's model gives the durations
/// of all its collectives.
bool groups_have_clocks(const CollectiveLoad& traffic);

/// True if the workers of each role are proven symmetric: all of them do everything at the same dates, so one
/// program may stand for them.
///
/// The proof is colour refinement. Workers, groups, transfers and links start with a colour given by their
/// own properties; two of the same colour are separated when their neighbours' colours differ, until nothing
/// changes. With max-min fair sharing all flows of a colour have the same rate, because the sharing is unique
/// and averaging the rates over a colour gives a max-min sharing too; so they end together. False if 100
/// rounds of refinement prove nothing. Jitter, which makes workers differ, is not looked at.
/// @param single_messages  messages and loads of single workers
bool workers_symmetric(const CollectiveLoad& traffic, const std::vector<SingleMessages>& single_messages);

}  // namespace stepcast
