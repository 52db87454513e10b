#include "sim/fidelity/fidelity_rule.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sim/fidelity/cost_estimate.hpp"
#include "sim/patterns/sampled_time.hpp"
#include "sim/patterns/time_bounds.hpp"

namespace stepcast {
namespace {

constexpr double kMostSampled = 5e5;   // messages of all samples
constexpr double kWorkPerMessage = 5;  // of samples, in the unit of MaxMinSharing::work
constexpr double kSmallLatencyShare = 0.05;
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

/// True if collectives that run at the same time are known to be within 1 % of every message when they are
/// coupled round by round.
bool close_when_concurrent(const CollectiveLoad& traffic, int segments) {
  std::map<const Pattern*, bool> even;
  return std::ranges::all_of(traffic.collectives, [&](const CollectiveLoad::One& one) {
    const auto [found, is_new] = even.try_emplace(one.pattern, false);
    // In a round of a tree not all ranks are active, and its edges do not use bandwidth that others leave.
    if (is_new) found->second = all_ranks_take_part(*one.schedule) && !is_uneven(traffic, one);
    const bool several_rounds = std::ranges::any_of(
        one.schedule->phases, [&](const Phase& phase) { return phase.rounds > segments; });
    // A segment of several rounds has their latencies together, at its start.
    return found->second && (!several_rounds || one.latency < kSmallLatencyShare * one.seconds);
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

enum class Closeness { proven, likely, unknown };

/// The closeness of the fidelity coupled for collectives that never run at the same time. `likely` requires
/// that all ranks are active in every round, over unmodified links. Other traffic that slows some links makes
/// the rest of a round wait, so that links are loaded one after the other instead of together: an error of up
/// to 9 % of the time.
Closeness closeness_when_alone(const CollectiveLoad& traffic) {
  double gap = 0, least = 0;
  std::map<const Pattern*, bool> together, exact;
  for (const CollectiveLoad::One& one : traffic.collectives) {
    const auto [all, is_new] = together.try_emplace(one.pattern, false);
    if (is_new) all->second = all_ranks_take_part(*one.schedule);
    if (!all->second) return Closeness::unknown;
    const double bound = least_seconds(*one.pattern, one.buffer);
    least += bound;
    if (one.seconds - bound <= kCloseEnough * one.seconds) continue;
    const auto [found, is_first] = exact.try_emplace(one.pattern, false);
    if (is_first) found->second = in_lock_step(*one.pattern, traffic.simulation.bandwidths);
    gap += found->second ? 0 : one.seconds - bound;
  }
  const double step = std::max(least, least_compute(traffic.simulation));
  if (gap <= kCloseEnough * step) return Closeness::proven;
  return traffic.simulation.bandwidths.scaled_evenly() ? Closeness::likely : Closeness::unknown;
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
  const Closeness close = concurrent ? Closeness::unknown : closeness_when_alone(traffic);
  if (close == Closeness::proven) return chosen;
  if (!concurrent && !traffic.simulation.plan->load_data) {
    if (auto seconds = sampled(traffic, close == Closeness::likely ? kCheapSampleMessages : kMostSampled)) {
      chosen.seconds = std::move(*seconds);
      return chosen;
    }
  }
  if (close == Closeness::likely) return chosen;
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
  chosen.sharing = simulation.sharing;
  chosen.segments = concurrent ? segments_of_phases(traffic) : 1;
  if (plan.asynchronous) {
    chosen.shares_links = shares_links(plan, simulation.fidelity);
    return chosen;
  }
  if (simulation.fidelity == Fidelity::automatic)
    return automatic(traffic, budget, std::move(chosen), concurrent);
  if (!traffic.folds && !plan.channels.empty()) return chosen;  // messages between single workers
  chosen.fidelity = simulation.fidelity;
  return chosen;
}

}  // namespace stepcast
