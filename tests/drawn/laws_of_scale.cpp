#include <algorithm>
#include <memory>
#include <set>

#include "core/random.hpp"
#include "tests/drawn/law_checks.hpp"

namespace stepcast::drawn {
namespace {

/// A worker whose pauses take half as long. All else is what the other worker does.
class HalfPauses : public Worker {
 public:
  explicit HalfPauses(Worker& worker) : worker_(worker) {}

  const Workload& workload() const override { return worker_.workload(); }
  Pending start_compute(Work pass, LayerRange layers) override { return worker_.start_compute(pass, layers); }
  Pending start_local(const LocalWork& work) override { return worker_.start_local(work); }
  Pending start_collective(CollectiveId collective) override { return worker_.start_collective(collective); }
  Pending start_send(RoleId role, const Message& message) override {
    return worker_.start_send(role, message);
  }
  Pending start_receive(MessageTag tag, RoleId role, Array into) override {
    return worker_.start_receive(tag, role, into);
  }
  Pending start_load(Bytes input) override { return worker_.start_load(input); }
  Pending start_pause(Seconds duration) override { return worker_.start_pause(0.5 * duration); }
  void synchronize() override { worker_.synchronize(); }
  void end_step() override { worker_.end_step(); }
  double mark(const char* phase) override { return worker_.mark(phase); }
  void record(const char* what, double value) override { worker_.record(what, value); }

 private:
  // The cast reaches a private base, which only the program's own worker needs elsewhere.
  void waited_for(const Operation& operation) override {
    ((::stepcast::Waiter&)worker_).waited_for(operation);
  }

  Worker& worker_;
};

/// The plan with all that a simulation's factor on compute does not concern halved: pauses, waits
/// and hosts.
Plan with_half_pauses(Plan plan) {
  for (Collective& one : plan.collectives) one.wait = 0.5 * one.wait;
  for (Workload& workload : plan.workloads) {
    for (Bucket& bucket : workload.buckets) bucket.wait = 0.5 * bucket.wait;
    for (LayerSeconds& host : workload.host)
      host = {0.5 * host.forward, 0.5 * host.backward, 0.5 * host.update};
  }
  const auto workers = std::make_shared<std::vector<std::unique_ptr<HalfPauses>>>();
  for (Role& role : plan.roles) {
    role.program = [workers, program = role.program](Worker& worker) {
      workers->push_back(std::make_unique<HalfPauses>(worker));
      return program(*workers->back());
    };
  }
  return plan;
}

}  // namespace

void check_halved(Trial& trial, Findings& findings) {
  const Plan half = with_half_pauses(trial.experiment().plan);
  for (const Form& form : {kMaxMin, kMessages}) {
    Simulation simulation = trial.simulation(form);
    simulation.plan = &half;
    simulation.noise.start_spread *= 0.5;
    simulation.bandwidths.multiply_all(2);
    simulation.latency_factor = 0.5;
    simulation.compute_factor *= 0.5;
    const Outcome& reference = trial.outcome(form);
    const Outcome outcome = simulated(simulation);
    const bool other = result_text(outcome) != result_text(reference);
    const bool nccl = trial.experiment().platform.software.nccl > 0;  // its model has times of its own
    findings.push_back({nccl    ? "halved, NCCL"
                        : other ? "halved, other form"
                                : "halved",
                        2 * outcome.step, reference.step, difference(2 * outcome.step, reference.step),
                        nccl    ? kNoBound
                        : other ? kClose
                                : kRounding,
                        "twice the step with all times halved | step, both" + to_text(form),
                        " |" + to_text(form)});
  }
}

namespace {

/// Whether operations on the network may run at the same time.
bool overlaps(const Plan& plan) {
  std::set<CommunicatorId> busy;
  for (const Collective& collective : plan.collectives) busy.insert(collective.communicator);
  return plan.assigns_work_by_message || plan.load_data || !plan.channels.empty() || busy.size() > 1 ||
         std::ranges::any_of(plan.communicators, [](const Communicator& one) { return one.in_flight > 1; });
}

bool chooses_algorithms(const Plan& plan) {
  return std::ranges::any_of(plan.collectives,
                             [&](const Collective& one) { return has_automatic_algorithm(plan, one); });
}

}  // namespace

// Only operations that never overlap, by algorithms that the scenario names, are certainly no slower. Of
// others, one that is done earlier lets another start earlier, which then takes bandwidth from a third that a
// worker waits for (R. Graham's anomalies of schedules), and another algorithm may be chosen, by an estimate.
void check_faster(Trial& trial, Findings& findings) {
  const Plan& plan = trial.experiment().plan;
  Simulation simulation = trial.simulation(kMessages);
  simulation.bandwidths.multiply_all(2);
  const double reference = trial.outcome(kMessages).step, faster = simulated(simulation).step;
  const bool nccl = trial.experiment().platform.software.nccl > 0;
  const char* law = nccl                       ? "faster, NCCL"
                    : plan.asynchronous        ? "faster, asynchronous"
                    : overlaps(plan)           ? "faster, overlapping"
                    : chooses_algorithms(plan) ? "faster, automatic"
                                               : "faster";
  findings.push_back({law, faster, reference, std::max(0.0, faster / reference - 1),
                      law == std::string("faster") ? kRounding : kNoBound, "bandwidths doubled | as drawn",
                      to_text(kMessages) + " |" + to_text(kMessages)});
}

namespace {

/// Whether every two nodes of the platform may change places.
bool nodes_are_equal(const Experiment& experiment) {
  const auto* tree = std::get_if<FatTreeShape>(&experiment.platform.network.fabric);
  return tree != nullptr && tree->levels.empty() && experiment.bandwidths.scaled_evenly() &&
         !experiment.noise.per_node;
}

}  // namespace

void check_permuted(Trial& trial, Findings& findings) {
  const Experiment& experiment = trial.experiment();
  const Platform& platform = experiment.platform;
  if (!nodes_are_equal(experiment)) return;
  Plan plan = experiment.plan;
  const auto order = permutation({experiment.seed, Purpose::placement, 1, 0, 0}, platform.nodes);
  for (std::size_t rank = 0; rank < plan.endpoints.size(); ++rank) {
    int& endpoint = plan.endpoints[RankId(rank)];
    if (endpoint >= platform.storage_endpoint()) continue;
    const int node = order[platform.node_of(endpoint)];
    endpoint = endpoint < platform.devices()
                   ? node * platform.devices_per_node + endpoint % platform.devices_per_node
                   : platform.host_endpoint(node);
  }
  Simulation simulation = trial.simulation(kMessages);
  simulation.plan = &plan;
  const Outcome& reference = trial.outcome(kMessages);
  const double other = simulated(simulation).step;
  findings.push_back({"permuted", other, reference.step, difference(other, reference.step), kRounding,
                      "nodes in another order | as drawn", " |" + to_text(kMessages)});
}

}  // namespace stepcast::drawn
