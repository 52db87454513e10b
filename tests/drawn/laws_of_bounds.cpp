#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "sim/collectives/collective_schedules.hpp"
#include "sim/patterns/sampled_time.hpp"
#include "tests/drawn/law_checks.hpp"

namespace stepcast::drawn {
namespace {

/// A worker whose operations end at once. It adds up what they would take if each were alone.
class AddingWorker : public Worker {
 public:
  AddingWorker(const Plan& plan, const Role& role)
      : collectives(plan.collectives.size(), 0), plan_(plan), role_(role) {}

  double compute = 0;               ///< layers [s]
  double other = 0;                 ///< arithmetic, pauses and hosts [s]
  std::vector<double> collectives;  ///< calls
  std::vector<std::pair<RoleId, Message>> messages;

  const Workload& workload() const override { return plan_.workloads.at(role_.workload); }
  Pending start_compute(Work pass, LayerRange layers) override {
    compute += sum(pass, layers, workload().median);
    if (!workload().host.empty()) other += sum(pass, layers, workload().host);
    return done();
  }
  Pending start_local(const LocalWork& work) override { return paused(work.duration); }
  Pending start_pause(Seconds duration) override { return paused(duration); }
  Pending start_collective(CollectiveId collective) override {
    ++collectives.at(collective.index());
    return done();
  }
  Pending start_send(RoleId role, const Message& message) override {
    messages.emplace_back(role, message);
    return done();
  }
  Pending start_receive(MessageTag /*tag*/, RoleId /*role*/, Array /*into*/) override { return done(); }
  Pending start_load(Bytes /*input*/) override { return done(); }
  void end_step() override {}
  double mark(const char* /*phase*/) override { return 0; }
  void record(const char* /*what*/, double /*value*/) override {}

 private:
  void waited_for(const Operation& /*operation*/) override {}
  static double sum(Work pass, LayerRange layers, const std::vector<LayerSeconds>& times) {
    double seconds = 0;
    for (int i = layers.first; i < layers.last; ++i) {
      const LayerSeconds& layer = times[i];
      seconds += pass == Work::forward    ? layer.forward
                 : pass == Work::backward ? layer.backward
                                          : layer.update;
    }
    return seconds;
  }
  Pending paused(Seconds duration) {
    other += duration.value;
    return done();
  }
  static Pending done() {
    auto operation = std::make_shared<Operation>();
    operation->done = true;
    return operation;
  }

  const Plan& plan_;
  const Role& role_;
};

/// The parts of a run without noise, each alone [s].
struct Parts {
  double most_compute = 0;  ///< layers of the worker that computes longest
  double busiest_link = 0;  ///< bytes of all collectives over one link
  double all = 0;           ///< all parts one after the other
};

/// Time of a message of a member of a role, alone on its route [s].
double message_seconds(const Simulation& simulation, const Topology& topology, RankId from, RankId to,
                       const Message& message) {
  const Platform& platform = *simulation.platform;
  const int source = simulation.plan->endpoints[from], target = simulation.plan->endpoints[to];
  if (source == target) return 0;
  std::vector<int> route;
  topology.route(source, target, route);
  double rate = INFINITY;
  for (const int link : route) rate = std::min(rate, simulation.bandwidths[link].value);
  const bool inside = platform.node_of(source) == platform.node_of(target);
  const Bytes size{message.buffer.size.value / message.parts};
  const MessageCost& cost =
      message_cost(inside ? platform.program_costs_in_node() : platform.message_costs, size);
  return message.parts * (topology.latency_of(route).value + cost.overhead.value +
                          size.value / (cost.bandwidth_factor * rate));
}

double messages_seconds(const Simulation& simulation, const Topology& topology, const Role& role,
                        const AddingWorker& worker) {
  double seconds = 0;
  for (const auto& [to, message] : worker.messages) {
    const Role& receiver = simulation.plan->roles[to.index()];
    for (int member = 0; member < role.members; ++member) {
      const int other = receiver.members == 1 ? 0 : std::min(member, receiver.members - 1);
      seconds += message_seconds(simulation, topology, role.rank(member), receiver.rank(other), message);
    }
  }
  return seconds;
}

/// Time of a collective alone, message by message [s]. `known` keeps times.
double collective_seconds(Sampling& sampling, const CollectiveLoad::One& one,
                          std::map<std::pair<const Pattern*, double>, double>& known) {
  const auto [found, is_new] = known.try_emplace({one.pattern, one.buffer.value}, 0);
  if (is_new) {
    constexpr double kWork = 1e12;  // enough for all
    found->second = sampling.time(*one.pattern, one.buffer, kWork).value().seconds;
  }
  return found->second;
}

/// Adds the bytes of a collective to the links that carry them.
void add_bytes(const CollectiveLoad::One& one, double calls, std::map<int, double>& bytes) {
  const Pattern& pattern = *one.pattern;
  const double part = one.buffer.value / pattern.schedule->parts;
  for (const Phase& phase : pattern.schedule->phases) {
    for (const Edge& edge : *phase.edges) {
      std::vector<int> route;
      pattern.placement.topology->route(pattern.placement.endpoints[edge.source],
                                        pattern.placement.endpoints[edge.target], route);
      for (const int link : route) bytes[link] += calls * part * phase.active * phase.unit * edge.chunks;
    }
  }
}

/// Nothing for plans whose programs depend on the content of messages.
std::optional<Parts> parts_of(const Simulation& simulation) {
  const Plan& plan = *simulation.plan;
  if (plan.asynchronous || plan.assigns_work_by_message) return std::nullopt;
  const Topology topology(*simulation.platform);
  const CollectiveSchedules schedules(simulation, topology);
  Parts parts;
  std::vector<double> calls(plan.collectives.size(), 0);
  for (const Role& role : plan.roles) {
    AddingWorker worker(plan, role);
    Program program = role.program(worker);
    program.start();
    const double compute = simulation.compute_factor * worker.compute;  // that of the slowest device
    if (role.training) parts.most_compute = std::max(parts.most_compute, compute);
    parts.all += compute + simulation.compute_factor * worker.other +
                 messages_seconds(simulation, topology, role, worker);
    for (std::size_t i = 0; i < calls.size(); ++i) calls[i] = std::max(calls[i], worker.collectives[i]);
  }
  parts.all *= plan.compute_slowdown * plan.message_slowdown * plan.load_slowdown;
  std::map<int, double> bytes;
  const CollectiveLoad load = schedules.load();
  std::map<std::pair<const Pattern*, double>, double> known;
  Sampling sampling(simulation.bandwidths, LinkSharing::max_min);
  for (const CollectiveLoad::One& one : load.collectives) {
    const bool nccl = schedules[one.id].known;
    const double seconds = nccl ? one.seconds : collective_seconds(sampling, one, known);
    // Groups drift apart, and a collective of one then shares links with another collective of the next.
    parts.all += calls[one.id.index()] * seconds * load.groups(one);
    if (!nccl) add_bytes(one, calls[one.id.index()], bytes);
  }
  for (std::size_t i = 0; i < calls.size(); ++i) parts.all += calls[i] * plan.collectives[i].wait.value;
  for (const auto& [link, sum] : bytes)
    parts.busiest_link = std::max(parts.busiest_link, sum / simulation.bandwidths[link].value);
  return parts;
}

/// Checks that all parts of all steps together are finite and not negative, and that compute is not longer
/// than the steps. A single step may be shorter than the mean of its compute: workers whose last step was
/// short have begun it before the others ended theirs.
void check_times(const Trial& trial, const Outcome& outcome, const Form& form, Findings& findings) {
  StepSeconds sum;
  double least_step = outcome.step;
  for (const StepSeconds& step : outcome.result.steps) {
    for (const auto part :
         {&StepSeconds::seconds, &StepSeconds::compute, &StepSeconds::host, &StepSeconds::waiting,
          &StepSeconds::loading, &StepSeconds::exposed, &StepSeconds::communication})
      sum.*part += step.*part;
    least_step = std::min(least_step, step.seconds);
  }
  double worst = least_step > 0 && std::isfinite(sum.seconds) ? 0 : 1e300;
  for (const double out_of_range : {-sum.compute, -sum.host, -sum.waiting, -sum.loading, -sum.exposed,
                                    -sum.communication, sum.compute - sum.seconds})
    worst = std::isfinite(out_of_range) ? std::max(worst, out_of_range / sum.seconds) : 1e300;
  // Of asynchronous workers the step is a harmonic mean and its parts are arithmetic means.
  const bool uneven = trial.experiment().plan.asynchronous;
  const bool ends = worst < 1e300;
  findings.push_back({uneven && ends ? "times, asynchronous" : "times", sum.compute, sum.seconds, worst,
                      uneven && ends ? kNoBound : kRounding, "compute | all steps", to_text(form) + " |"});
}

}  // namespace

void check_bounds(Trial& trial, Findings& findings) {
  for (const Form& form : {Form{}, kMessages}) check_times(trial, trial.outcome(form), form, findings);
  const auto parts = parts_of(trial.simulation(kMessages));
  if (!parts) return;
  const Noise& noise = trial.experiment().noise;
  for (const Form& form : {Form{}, kMessages}) {
    double whole = 0;
    for (const StepSeconds& step : trial.outcome(form).result.steps) whole += step.seconds;
    const auto at_least = [&](const char* law, double least) {
      findings.push_back({law, whole, least, std::max(0.0, least / whole - 1), kRounding,
                          "all steps | " + std::string(law), to_text(form) + " |"});
    };
    at_least("busiest link", parts->busiest_link);
    if (noise.jitter != Noise::Jitter::none) continue;
    at_least("compute", parts->most_compute);
    if (noise.has_stragglers() || trial.experiment().plan.load_data) continue;  // loads are not added up
    findings.push_back({"all parts", whole, parts->all, std::max(0.0, whole / parts->all - 1), kClose,
                        "all steps | all parts one after the other", to_text(form) + " |"});
  }
}

}  // namespace stepcast::drawn
