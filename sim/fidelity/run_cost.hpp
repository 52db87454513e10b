#pragma once

#include <optional>
#include <vector>

#include "sim/patterns/pattern.hpp"
#include "sim/simulation.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// Limit of the processor time for simulating every message of every worker.
enum class ComputeBudget {
  small,  ///< kSmallBudgetPerStep: within it no cheaper fidelity is looked for
  large,  ///< the small budget or kLargeBudgetPerRun, if no cheaper fidelity is known to be close
};
constexpr double kSmallBudgetPerStep = 0.12;  ///< [s]
constexpr double kLargeBudgetPerRun = 60;     ///< [s]
/// Largest estimated processor time of a run whose links SimGrid shares [s]. It carries 201 of the 223
/// shipped points that NCCL's closed form does not take and that send anything, and all scenarios take 127 s
/// on two cores.
constexpr double kSimGridBudgetPerRun = 0.25;

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
    bool modelled;   ///< a model of the library gives its duration: nothing of it is simulated
  };

  const Simulation& simulation;
  std::vector<One> collectives;  ///< those that send anything
  bool folds = true;             ///< one program stands for all workers of a role
  bool joint = true;             ///< all groups of a communicator are simulated as one pattern

  int groups(const One& one) const {
    return simulation.plan->communicators[one.communicator.index()].groups();
  }
};

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

/// The same, estimated where it cannot be counted: in a step, a worker calls each collective once, and sends
/// a request to every server, which replies.
CallsPerStep estimated_calls(const Plan& plan);

/// The chosen way to simulate a run's collectives and messages.
struct ChosenFidelity {
  Fidelity fidelity = Fidelity::message;  ///< of the network that simulates patterns
  LinkSharing link_sharing = LinkSharing::max_min;
  bool uses_bottleneck_sharing = false;  ///< single messages use BottleneckSharing
  int segments = 1;                      ///< number of segments that a phase is divided into
  Accuracy accuracy = Accuracy::exact;
  /// `coupled` may take less time than every message, so no run with lower bounds tells its error.
  bool may_be_short = false;
  /// Sampled durations in the order of CollectiveLoad::collectives [s]; empty if not sampled.
  std::vector<double> seconds;

  /// The fidelity that results name: sampled durations are those of every message.
  UsedFidelity used() const {
    const bool sampled = !seconds.empty();
    return {sampled ? Fidelity::message : fidelity, sampled, uses_bottleneck_sharing, accuracy};
  }
};

/// Number of flows of a step: messages, or flows of the fidelities fluid and coupled.
double flows_per_step(const CollectiveLoad& traffic, const ChosenFidelity& chosen, const CallsPerStep& calls);

/// Estimated cost of simulating a run.
struct RunCost {
  double flows = 0;    ///< number of messages, or of flows in the fidelities fluid and coupled
  double seconds = 0;  ///< processor time [s]
};
RunCost run_cost(const CollectiveLoad& traffic, const ChosenFidelity& chosen);

/// Estimated processor time of a run's programs, which comes on top of that of its flows [s]. 0 for
/// asynchronous plans, whose messages take far longer.
double program_seconds(const CollectiveLoad& traffic);

/// True if SimGrid is estimated to carry a run of this many flows of a fidelity within kSimGridBudgetPerRun.
bool affordable_by_simgrid(const Plan& plan, Fidelity fidelity, double flows);

/// True if simulating every message, as often as the programs send it, is estimated to fit the budget.
bool affordable(const CollectiveLoad& traffic, ComputeBudget budget);

/// True if simulating every message fits the budget at the lowest known cost per message. For callers that
/// abort the simulation when it exceeds the budget.
bool worth_trying(const CollectiveLoad& traffic, ComputeBudget budget);

/// True if single messages use BottleneckSharing: in asynchronous plans without collectives whose messages
/// would take too long one by one.
bool uses_bottleneck_sharing(const Plan& plan, Fidelity fidelity);

}  // namespace stepcast
