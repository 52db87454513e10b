#include "sim/fidelity/fidelity_rule.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>

#include "sim/patterns/pattern.hpp"

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
  if (chosen.link_sharing == LinkSharing::max_min && chosen.fidelity == Fidelity::message)
    return {count, max_min_sharing_seconds(count)};
  const auto ranks = static_cast<double>(traffic.simulation.plan->endpoints.size());
  const double per_rank = chosen.fidelity == Fidelity::coupled ? 0 : kSecondsPerMessageAndRank * ranks;
  return {count, count * (kSecondsPerMessage + per_rank)};
}

namespace {

constexpr double kMostSampled = 5e5;   // messages of all samples
constexpr double kWorkPerMessage = 5;  // of samples, in the unit of MaxMinSharing::work
constexpr double kSmallLatencyShare = 0.05, kHiddenLatencyShare = 0.01;
constexpr double kUneven = 1.2;
constexpr double kCloseEnough = 0.003;  // share of a step: largest gap between bounds, and error of samples
constexpr int kLeastSegments = 8;
constexpr int kMostFlows = 30'000;  // flows per step

std::size_t busy_communicators(const CollectiveLoad& traffic) {
  std::set<CommunicatorId> busy;
  for (const Collective& collective : traffic.simulation.plan->collectives)
    busy.insert(collective.communicator);
  return busy.size();
}

bool runs_concurrently(const CollectiveLoad& traffic) {
  const Plan& plan = *traffic.simulation.plan;
  if (busy_communicators(traffic) > 1 || !plan.channels.empty()) return true;
  return std::ranges::any_of(plan.communicators,
                             [](const Communicator& one) { return one.streams > 1 && one.in_flight > 1; });
}

/// Largest number of segments per phase for which a step has at most kMostFlows flows.
int segments_of_phases(const CollectiveLoad& traffic) {
  std::size_t phases = 1;
  for (const CollectiveLoad::One& one : traffic.collectives) phases += one.schedule->phases.size();
  return std::max(kLeastSegments, static_cast<int>(kMostFlows / phases));
}

/// True if the slowest edge of a round delays the other edges, which share links with another collective.
/// Such edges use their bandwidth in bursts, which a flow of constant rate does not represent.
bool is_uneven(const CollectiveLoad& traffic, const CollectiveLoad::One& one) {
  const LinkBandwidths& bandwidths = traffic.simulation.bandwidths;
  return !bandwidths.scaled_evenly() || unevenness(*one.pattern, bandwidths) > kUneven;
}

/// True if one flow for each round is known to give a time within 1 % of a simulation of every message,
/// although collectives run at the same time.
bool close_when_concurrent(const CollectiveLoad& traffic, int segments) {
  std::map<const Pattern*, bool> even;
  return std::ranges::all_of(traffic.collectives, [&](const CollectiveLoad::One& one) {
    const auto [found, is_new] = even.try_emplace(one.pattern, false);
    // In a round of a tree not all ranks are active, and the active edges do not use the bandwidth of the
    // idle ones.
    if (is_new)
      found->second =
          all_ranks_take_part(*one.schedule) && !kinds_share_links(*one.pattern) && !is_uneven(traffic, one);
    const bool several_rounds = std::ranges::any_of(
        one.schedule->phases, [&](const Phase& phase) { return phase.rounds > segments; });
    // A segment of several rounds has their latencies together, at its start.
    if (!found->second || (several_rounds && one.latency >= kSmallLatencyShare * one.seconds)) return false;
    // Edges that are not in lock step use a shared link while others of their round wait for their latency.
    return one.latency < kHiddenLatencyShare * one.seconds ||
           in_lock_step(*one.pattern, traffic.simulation.bandwidths);
  });
}

/// Compute time of the slowest role [s], a lower bound of the duration of a step.
double least_compute(const Simulation& simulation) {
  double most = 0;
  for (const Role& role : simulation.plan->roles) {
    if (!role.training || role.workload < 0) continue;
    double seconds = 0;
    const auto& workload = simulation.plan->workloads[static_cast<std::size_t>(role.workload)];
    for (const LayerSeconds& layer : workload.median)
      seconds += layer.forward + layer.backward + layer.update;
    most = std::max(most, seconds * simulation.compute_factor);
  }
  return most;
}

/// Whether the error of a fidelity is below kCloseEnough.
enum class ErrorBound { proven, likely, unknown };

/// The error bound of the fidelity coupled for collectives that never run at the same time. `likely` requires
/// that all ranks are active in every round, over unmodified links. Other traffic that slows some links makes
/// the rest of a round wait, so that links are loaded one after the other instead of together: an error of up
/// to 9 % of the time.
ErrorBound error_bound_when_alone(const CollectiveLoad& traffic) {
  double gap = 0, least = 0;
  std::map<const Pattern*, bool> together, exact;
  for (const CollectiveLoad::One& one : traffic.collectives) {
    const auto [all, is_new] = together.try_emplace(one.pattern, false);
    if (is_new) all->second = all_ranks_take_part(*one.schedule) && !kinds_share_links(*one.pattern);
    if (!all->second) return ErrorBound::unknown;
    const double bound = least_seconds(*one.pattern, one.buffer);
    least += bound;
    if (one.seconds - bound <= kCloseEnough * one.seconds) continue;
    const auto [found, is_first] = exact.try_emplace(one.pattern, false);
    if (is_first) found->second = in_lock_step(*one.pattern, traffic.simulation.bandwidths);
    gap += found->second ? 0 : one.seconds - bound;
  }
  const double step = std::max(least, least_compute(traffic.simulation));
  if (gap <= kCloseEnough * step) return ErrorBound::proven;
  return traffic.simulation.bandwidths.scaled_evenly() ? ErrorBound::likely : ErrorBound::unknown;
}

/// Sampled duration of every collective, with each different one simulated alone [s]. Returns nothing if that
/// takes too long or the durations of rounds do not become constant.
/// @param most  limit of the number of messages
std::optional<std::vector<double>> sampled(const CollectiveLoad& traffic, double most) {
  std::map<std::pair<const Pattern*, double>, double> known;
  double messages = 0;
  for (const CollectiveLoad::One& one : traffic.collectives) {
    const bool is_new = known.try_emplace({one.pattern, one.buffer.value}, 0).second;
    messages += is_new ? sampled_messages(*one.pattern->schedule) : 0;
  }
  if (messages > most) return std::nullopt;
  double work = kWorkPerMessage * most;
  for (auto& [what, seconds] : known) {
    const auto simulated = sampled_time(*what.first, {what.second}, traffic.simulation.bandwidths, work);
    if (!simulated || simulated->error > kCloseEnough) return std::nullopt;
    seconds = simulated->seconds;
    work -= simulated->work;
  }
  std::vector<double> seconds;
  for (const CollectiveLoad::One& one : traffic.collectives)
    seconds.push_back(known.at({one.pattern, one.buffer.value}));
  return seconds;
}

/// Simulation of every message.
ChosenFidelity every_message(ChosenFidelity chosen) {
  chosen.fidelity = Fidelity::message;
  return chosen;
}

ChosenFidelity automatic(const CollectiveLoad& traffic, ComputeBudget budget, ChosenFidelity chosen,
                         bool concurrent) {
  const bool channels = !traffic.simulation.plan->channels.empty();
  if (!traffic.joint || (!traffic.folds && channels)) return every_message(std::move(chosen));
  chosen.fidelity = Fidelity::coupled;
  if (concurrent && close_when_concurrent(traffic, chosen.segments)) return chosen;
  const ErrorBound bound = concurrent ? ErrorBound::unknown : error_bound_when_alone(traffic);
  if (bound == ErrorBound::proven) return chosen;
  if (!concurrent && !traffic.simulation.plan->load_data) {
    if (auto seconds = sampled(traffic, bound == ErrorBound::likely ? kCheapSampleMessages : kMostSampled)) {
      chosen.seconds = std::move(*seconds);
      return chosen;
    }
  }
  if (bound == ErrorBound::likely) return chosen;
  if (affordable(traffic, budget)) return every_message(std::move(chosen));
  chosen.accuracy = Accuracy::rough;
  return chosen;
}

}  // namespace

ChosenFidelity choose_fidelity(const CollectiveLoad& traffic, ComputeBudget budget) {
  const Simulation& simulation = traffic.simulation;
  const Plan& plan = *simulation.plan;
  const bool concurrent = runs_concurrently(traffic);
  ChosenFidelity chosen;
  chosen.link_sharing = simulation.link_sharing;
  chosen.segments = concurrent ? segments_of_phases(traffic) : 1;
  if (plan.asynchronous) {
    chosen.uses_bottleneck_sharing = uses_bottleneck_sharing(plan, simulation.fidelity);
    return chosen;
  }
  if (simulation.fidelity == Fidelity::automatic)
    return automatic(traffic, budget, std::move(chosen), concurrent);
  if (!traffic.folds && !plan.channels.empty()) return chosen;  // messages between single workers
  chosen.fidelity = simulation.fidelity;
  return chosen;
}

}  // namespace stepcast
