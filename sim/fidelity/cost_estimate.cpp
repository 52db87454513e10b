#include "sim/fidelity/cost_estimate.hpp"

#include <algorithm>
#include <stdexcept>

namespace stepcast {
namespace {

/// A worker whose operations are counted and end at once.
class CountingWorker : public Worker {
 public:
  CountingWorker(const Plan& plan, const Role& role)
      : collectives(plan.collectives.size(), 0), plan_(plan), role_(role) {}

  std::vector<double> collectives;
  double messages = 0, steps = 0;

  const Workload& workload() const override {
    return plan_.workloads.at(static_cast<std::size_t>(role_.workload));
  }
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
  Pending start_receive(int /*tag*/, RoleId /*role*/, Array /*into*/) override { return done(); }
  Pending start_load(Bytes /*input*/) override { return done(); }
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

// Processor time of a message with SimGrid's sharing: a constant part and a part per rank. Measured on rings
// of 64 to 1,024 workers on one switch (docs/explanation/performance.md).
constexpr double kSecondsPerMessage = 3e-6, kSecondsPerMessageAndRank = 10e-9;
// Processor time of a message with MaxMinSharing. Measured: 0.5 to 15 us, in three of four cases at most 5 us
// (docs/explanation/performance.md).
constexpr double kBuiltInSecondsPerMessage = 4e-6, kLeastBuiltInSecondsPerMessage = 1e-6;

/// Number of flows in a step: for each segment of a phase, one flow per edge (fluid) or one flow (coupled).
double flows_per_step(const CollectiveLoad& traffic, const ChosenFidelity& chosen) {
  double flows = 0;
  for (const CollectiveLoad::One& one : traffic.collectives) {
    for (const Phase& phase : one.schedule->phases) {
      const auto edges = static_cast<double>(phase.edges->size()) * traffic.groups(one);
      flows += std::min(chosen.segments, phase.rounds) * (chosen.fidelity == Fidelity::fluid ? edges : 1);
    }
  }
  return flows;
}

bool fits_budget(const CollectiveLoad& traffic, ComputeBudget budget, double seconds_per_message) {
  const auto calls = calls_per_step(*traffic.simulation.plan);
  if (!calls) return false;
  double messages = calls->messages;
  for (const CollectiveLoad::One& one : traffic.collectives)
    messages += calls->collectives[one.id.index()] * message_count(*one.schedule) * traffic.groups(one);
  const double step = messages * seconds_per_message;
  return step <= kSmallBudgetPerStep ||
         (budget == ComputeBudget::large && calls->steps * step <= kLargeBudgetPerRun);
}

/// Number of messages of all collectives, each called once.
double messages_per_step(const CollectiveLoad& traffic) {
  double messages = 0;
  for (const CollectiveLoad::One& one : traffic.collectives)
    messages += message_count(*one.schedule) * traffic.groups(one);
  return messages;
}

/// Estimated processor time of simulating this number of messages with MaxMinSharing [s].
double max_min_sharing_seconds(double messages) {
  return messages * kBuiltInSecondsPerMessage;
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

StepCost step_cost(const CollectiveLoad& traffic, const ChosenFidelity& chosen) {
  if (!chosen.seconds.empty()) return {};
  const double count =
      chosen.fidelity == Fidelity::message ? messages_per_step(traffic) : flows_per_step(traffic, chosen);
  if (chosen.sharing == Sharing::max_min && chosen.fidelity == Fidelity::message)
    return {count, max_min_sharing_seconds(count)};
  const auto ranks = static_cast<double>(traffic.simulation.plan->endpoints.size());
  const double per_rank = chosen.fidelity == Fidelity::coupled ? 0 : kSecondsPerMessageAndRank * ranks;
  return {count, count * (kSecondsPerMessage + per_rank)};
}

}  // namespace stepcast
