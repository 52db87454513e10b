#include "sim/fidelity/run_cost.hpp"

#include <algorithm>
#include <stdexcept>

#include "strategies/program/worker.hpp"

namespace stepcast {

namespace {

/// A worker whose operations are counted and end at once.
class CountingWorker : public Worker {
 public:
  CountingWorker(const Plan& plan, const Role& role)
      : collectives(plan.collectives.size(), 0), plan_(plan), role_(role) {}

  std::vector<double> collectives;
  double messages = 0, steps = 0;

  const Workload& workload() const override { return plan_.workloads.at(role_.workload); }
  Pending start_compute(Work /*pass*/, LayerRange /*layers*/) override { return done(); }
  Pending start_local(const LocalWork& /*work*/) override { return done(); }
  Pending start_collective(CollectiveId collective) override {
    ++collectives.at(collective.index());
    return done();
  }
  Pending start_send(RoleId /*role*/, const Message& /*message*/) override {
    ++messages;
    return done();
  }
  Pending start_receive(MessageTag /*tag*/, RoleId /*role*/, Array /*into*/) override { return done(); }
  Pending start_load(Bytes /*input*/) override {
    if (plan_.load_data) ++messages;
    return done();
  }
  Pending start_pause(Seconds /*duration*/) override { return done(); }
  void end_step() override { ++steps; }
  double mark(const char* /*phase*/) override { return 0; }
  void record(const char* /*what*/, double /*value*/) override {}

 private:
  void waited_for(const Operation& /*operation*/) override {}
  static Pending done() {
    auto operation = std::make_shared<Operation>();
    operation->done = true;
    return operation;
  }

  const Plan& plan_;
  const Role& role_;
};

}  // namespace

std::optional<CallsPerStep> calls_per_step(const Plan& plan) {
  if (plan.asynchronous || plan.assigns_work_by_message) return std::nullopt;
  CallsPerStep calls;
  calls.collectives.assign(plan.collectives.size(), 0);
  for (const Role& role : plan.roles) {
    CountingWorker worker(plan, role);
    Program program = role.program(worker);
    program.start();
    if (program.error()) std::rethrow_exception(program.error());
    if (!program.done()) throw std::logic_error("a program waits where nothing takes time");
    const double steps = std::max(worker.steps, 1.0);
    calls.steps = std::max(calls.steps, steps);
    calls.messages += role.members * worker.messages / steps;
    for (std::size_t i = 0; i < calls.collectives.size(); ++i)
      calls.collectives[i] = std::max(calls.collectives[i], worker.collectives[i] / steps);
  }
  return calls;
}

namespace {

/// Pairs of training workers and servers that exchange messages at the same time, and workers that load
/// input.
double messages_in_flight(const Plan& plan) {
  double trainers = 0, servers = 0;
  for (const Role& role : plan.roles) (role.training ? trainers : servers) += role.members;
  return trainers * servers + (plan.load_data ? trainers : 0);
}

}  // namespace

CallsPerStep estimated_calls(const Plan& plan) {
  if (auto counted = calls_per_step(plan)) return std::move(*counted);
  return {std::vector<double>(plan.collectives.size(), 1), 2 * messages_in_flight(plan),
          static_cast<double>(plan.steps)};
}

namespace {

// Processor time of a message with SimGrid's sharing: a constant part and a part per rank. Measured on rings
// of 64 to 1,024 workers on one switch (docs/explanation/performance.md). Where servers are busy, each
// message changes the rates of all others, which takes either solver the same time per message in flight.
constexpr double kSecondsPerMessage = 3e-6, kSecondsPerMessageAndRank = 10e-9,
                 kSecondsPerMessageInFlight = 50e-9;
// Processor time of a message with MaxMinSharing. Measured: 0.5 to 15 us, in three of four cases at most 5 us
// (docs/explanation/performance.md).
constexpr double kBuiltInSecondsPerMessage = 4e-6, kLeastBuiltInSecondsPerMessage = 1e-6;
// Processor time of a message with BottleneckSharing, measured with case P of bench/ and 1,024 workers.
constexpr double kSharedSecondsPerMessage = 1.5e-6;
// Processor time of messages one by one over which a run uses BottleneckSharing [s].
constexpr double kBottleneckSeconds = 0.1;

double flows_of_call(const CollectiveLoad& traffic, const CollectiveLoad::One& one,
                     const ChosenFidelity& chosen) {
  const double groups = traffic.groups(one);
  if (chosen.fidelity == Fidelity::message) return message_count(*one.schedule) * groups;
  double flows = 0;
  for (const Phase& phase : one.schedule->phases) {
    const double edges = phase.edges->size() * groups;
    flows += std::min(chosen.segments, phase.rounds) * (chosen.fidelity == Fidelity::fluid ? edges : 1);
  }
  return flows;
}

}  // namespace

double flows_per_step(const CollectiveLoad& traffic, const ChosenFidelity& chosen,
                      const CallsPerStep& calls) {
  const bool together = chosen.fidelity == Fidelity::coupled && traffic.folds;
  double flows = calls.messages / (together ? std::max(traffic.simulation.plan->workers, 1) : 1);
  if (!chosen.seconds.empty()) return flows;
  for (const CollectiveLoad::One& one : traffic.collectives) {
    if (!one.modelled) flows += calls.collectives[one.id.index()] * flows_of_call(traffic, one, chosen);
  }
  return flows;
}

namespace {

bool fits_budget(const CollectiveLoad& traffic, ComputeBudget budget, double seconds_per_message) {
  const auto calls = calls_per_step(*traffic.simulation.plan);
  if (!calls) return false;
  const double step = flows_per_step(traffic, {}, *calls) * seconds_per_message;
  return step <= kSmallBudgetPerStep ||
         (budget == ComputeBudget::large && calls->steps * step <= kLargeBudgetPerRun);
}

}  // namespace

bool affordable(const CollectiveLoad& traffic, ComputeBudget budget) {
  return fits_budget(traffic, budget, kBuiltInSecondsPerMessage);
}

bool worth_trying(const CollectiveLoad& traffic, ComputeBudget budget) {
  const double seconds =
      budget == ComputeBudget::large ? kLeastBuiltInSecondsPerMessage : kBuiltInSecondsPerMessage;
  return fits_budget(traffic, budget, seconds);
}

namespace {

double simgrid_seconds(const Plan& plan, Fidelity fidelity, double flows) {
  const double ranks = plan.endpoints.size();
  const double others = plan.asynchronous ? kSecondsPerMessageInFlight * messages_in_flight(plan)
                                          : kSecondsPerMessageAndRank * ranks;
  return flows * (kSecondsPerMessage + (fidelity == Fidelity::coupled ? 0 : others));
}

}  // namespace

RunCost run_cost(const CollectiveLoad& traffic, const ChosenFidelity& chosen) {
  const Plan& plan = *traffic.simulation.plan;
  const CallsPerStep calls = estimated_calls(plan);
  const double flows = calls.steps * flows_per_step(traffic, chosen, calls);
  if (chosen.uses_bottleneck_sharing) return {flows, kSharedSecondsPerMessage * flows};
  if (chosen.link_sharing == LinkSharing::max_min && chosen.fidelity == Fidelity::message &&
      !plan.asynchronous)
    return {flows, kBuiltInSecondsPerMessage * flows};
  return {flows, simgrid_seconds(plan, chosen.fidelity, flows)};
}

namespace {

// Processor time of a collective that a worker calls, with the passes before it: of a program, and of a clock
// in a folded program, where the workers form several groups or one. Measured with Llama 3 70B in meshes and
// with ZeRO on 512 and 4,096 workers.
constexpr double kSecondsPerCall = 1.2e-6, kSecondsPerClockOfGroups = 0.05e-6, kSecondsPerClock = 0.015e-6;

}  // namespace

double program_seconds(const CollectiveLoad& traffic) {
  const Plan& plan = *traffic.simulation.plan;
  if (plan.asynchronous) return 0;
  const CallsPerStep calls = estimated_calls(plan);
  const bool one_clock = traffic.simulation.noise.is_none();
  double seconds = 0;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Communicator& all = communicator_of(plan, plan.collectives[i]);
    const double clock = one_clock ? 0 : all.groups() > 1 ? kSecondsPerClockOfGroups : kSecondsPerClock;
    seconds += calls.collectives[i] * (traffic.folds ? kSecondsPerCall + clock * all.ranks.size()
                                                     : kSecondsPerCall * all.ranks.size());
  }
  return calls.steps * seconds;
}

bool affordable_by_simgrid(const Plan& plan, Fidelity fidelity, double flows) {
  // The route of a coupled flow has links of all ranks, and SimGrid 3.32 compares each with all others.
  constexpr std::size_t kMostRanks = 8192;
  return plan.endpoints.size() <= kMostRanks &&
         simgrid_seconds(plan, fidelity, flows) <= kSimGridBudgetPerRun;
}

bool uses_bottleneck_sharing(const Plan& plan, Fidelity fidelity) {
  constexpr std::size_t kMostExactRoles = 64;
  if (fidelity != Fidelity::automatic || !plan.collectives.empty() || plan.roles.size() <= kMostExactRoles)
    return false;
  const CallsPerStep calls = estimated_calls(plan);
  return simgrid_seconds(plan, Fidelity::message, calls.steps * calls.messages) > kBottleneckSeconds;
}

}  // namespace stepcast
