#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "sim/patterns/point_to_point_schedules.hpp"
#include "sim/patterns/sim_network.hpp"
#include "sim/simulation.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// Limit of the processor time for simulating every message of every worker.
enum class ComputeBudget {
  small,  ///< kSmallBudgetPerStep: within it no cheaper fidelity is looked for
  large,  ///< the small budget or kLargeBudgetPerRun, if no cheaper fidelity is known to be close
};
constexpr double kSmallBudgetPerStep = 0.5;  ///< [s]
constexpr double kLargeBudgetPerRun = 60;    ///< [s]

/// The collectives of a run as the choice of fidelity and folding needs them.
struct CollectiveLoad {
  struct One {
    const Schedule* schedule;  ///< of one group
    const Pattern* pattern;    ///< of all groups of its communicator together
    Bytes buffer;
    CommunicatorId communicator;
    CollectiveId id;
    double seconds;  ///< duration on an otherwise idle network with fidelity coupled [s]
    double latency;  ///< part of `seconds` that does not depend on bandwidth [s]
  };

  const Simulation& simulation;
  std::vector<One> collectives;  ///< those that send anything
  bool folds = true;             ///< one program stands for all workers of a role
  bool joint = true;             ///< all groups of a communicator are simulated as one pattern

  int groups(const One& one) const {
    return simulation.plan->communicators[one.communicator.index()].groups();
  }
};

/// The chosen way to simulate a run's collectives and messages.
struct ChosenFidelity {
  Fidelity fidelity = Fidelity::message;  ///< of the network that simulates patterns
  LinkSharing link_sharing = LinkSharing::max_min;
  bool uses_bottleneck_sharing = false;  ///< single messages use BottleneckSharing
  int segments = 1;                      ///< number of segments that a phase is divided into
  Accuracy accuracy = Accuracy::exact;
  /// Sampled durations in the order of CollectiveLoad::collectives [s]; empty if not sampled.
  std::vector<double> seconds;

  /// The fidelity that results name: sampled durations are those of every message.
  UsedFidelity used() const {
    const bool sampled = !seconds.empty();
    return {sampled ? Fidelity::message : fidelity, sampled, uses_bottleneck_sharing, accuracy};
  }
};

/// True if single messages use BottleneckSharing, in a plan whose messages are simulated one by one.
inline bool uses_bottleneck_sharing(const Plan& plan, Fidelity fidelity) {
  constexpr std::size_t kMostExactRoles = 64;
  return fidelity == Fidelity::automatic && plan.collectives.empty() && plan.roles.size() > kMostExactRoles;
}

/// The operations that workers start in a step.
struct CallsPerStep {
  std::vector<double> collectives;  ///< by collective of the plan: calls of one worker
  double messages = 0;              ///< messages and loads of all workers outside collectives
  double steps = 1;                 ///< number of steps of the run
};

/// Counts the operations by running the program of every role in a world in which no operation takes time.
/// Returns nothing for plans whose programs depend on the content of messages.
/// @throws std::logic_error if a program waits nevertheless
std::optional<CallsPerStep> calls_per_step(const Plan& plan);

/// Estimated cost of simulating the collectives of a step, each called once.
struct StepCost {
  double messages = 0;  ///< number of messages, or of flows in the fidelities fluid and coupled
  double seconds = 0;   ///< processor time [s]
};
StepCost step_cost(const CollectiveLoad& traffic, const ChosenFidelity& chosen);

/// True if simulating every message, as often as the programs send it, is estimated to fit the budget.
bool affordable(const CollectiveLoad& traffic, ComputeBudget budget);

/// True if simulating every message fits the budget at the lowest known cost per message. For callers that
/// abort the simulation when it exceeds the budget.
bool worth_trying(const CollectiveLoad& traffic, ComputeBudget budget);

/// Rule for `fidelity: automatic`: the cheapest fidelity that is known to be within 1 % of simulating every
/// message.
///
/// Collectives that never run at the same time: "coupled" if their rounds proceed in lock step, or if the
/// lower and the upper bound of a step differ by at most 0.3 %; otherwise "message, sampled", which simulates
/// each different collective once, alone, by some of its rounds; if that takes more than about 50 ms,
/// "coupled", provided that all ranks are active in every round. Collectives that run at the same time:
/// "coupled" with segments of one round, if edges of all ranks are active in every round and the slowest edge
/// takes at most 1.2 times as long as the fastest. Everything else: every message if that is affordable, and
/// otherwise "coupled, roughly". If rounds make more than 30,000 flows per step, phases are divided into
/// fewer segments, but at least 8; the result then counts as close only if latencies take less than 5 % of
/// the time. Groups with programs of their own (chosen_folding) and asynchronous plans are simulated message
/// by message. Asynchronous plans of more than 64 roles without collectives use BottleneckSharing: "message,
/// shared".
ChosenFidelity choose_fidelity(const CollectiveLoad& traffic, ComputeBudget budget);

/// Rule for `fold: automatic`. Workers are folded if that is exact: the workers of a role are in one group of
/// each communicator, exchange no single messages and load no input, or workers_symmetric proves them
/// symmetric. Otherwise,
/// if the user asks for every message or simulating every message is worth trying, each worker gets its own
/// program. The remaining cases are folded with Accuracy::rough: groups of a communicator that differ then
/// wait for each other. The fidelities fluid and coupled always fold when the user asks for them.
/// @param symmetric  returns workers_symmetric; called only if it matters
UsedFolding chosen_folding(const CollectiveLoad& traffic, ComputeBudget budget,
                           const std::function<bool()>& symmetric);

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
