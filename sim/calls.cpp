#include "sim/calls.hpp"

#include <algorithm>
#include <stdexcept>

namespace stepcast {
namespace {

/// A worker for whom everything is done at once, and counted.
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
  Pending start_collective(int index) override {
    ++collectives.at(static_cast<std::size_t>(index));
    return done();
  }
  Pending start_send(int /*role*/, const Message& /*message*/) override {
    ++messages;
    return done();
  }
  Pending start_receive(int /*tag*/, int /*role*/, Array /*into*/) override { return done(); }
  Pending start_load(Bytes /*input*/) override { return done(); }
  Pending start_pause(Seconds /*duration*/) override { return done(); }
  void calculate(const Arithmetic& /*run*/) override {}
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

std::optional<Calls> calls_a_step(const Plan& plan) {
  if (plan.asynchronous || plan.deals_work) return std::nullopt;
  Calls calls;
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

}  // namespace stepcast
