#include "sim/fidelity/fidelity_rule.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "sim/patterns/sampled_time.hpp"

namespace stepcast {

namespace {

constexpr double kMostSampled = 5e5;    // messages of all samples
constexpr double kWorkPerMessage = 5;   // of samples, in the unit of MaxMinSharing::work
constexpr double kCloseEnough = 0.003;  // share of a step: largest gap between bounds, and error of samples
constexpr int kLeastSegments = 8;
constexpr int kMostFlows = 30'000;  // flows per step

/// True if something that is simulated may run at the same time as something else. What a model of the
/// library gives takes its time whatever else runs.
bool runs_concurrently(const CollectiveLoad& traffic) {
  const Plan& plan = *traffic.simulation.plan;
  if (!plan.channels.empty() || plan.load_data) return true;
  std::set<CommunicatorId> busy;
  for (const CollectiveLoad::One& one : traffic.collectives) {
    if (!one.modelled) busy.insert(one.communicator);
  }
  return busy.size() > 1 || std::ranges::any_of(busy, [&](CommunicatorId id) {
           const Communicator& one = plan.communicators[id.index()];
           return one.streams > 1 && one.in_flight > 1;
         });
}

/// Largest number of segments per phase for which a step has at most kMostFlows flows.
int segments_of_phases(const CollectiveLoad& traffic) {
  std::size_t phases = 1;
  for (const CollectiveLoad::One& one : traffic.collectives) phases += one.schedule->phases.size();
  return std::max<int>(kLeastSegments, kMostFlows / phases);
}

/// Compute time of the slowest role [s], a lower bound of the duration of a step.
double least_compute(const Simulation& simulation) {
  double most = 0;
  for (const Role& role : simulation.plan->roles) {
    if (!role.training || role.workload < 0) continue;
    double seconds = 0;
    const auto& workload = simulation.plan->workloads[role.workload];
    for (const LayerSeconds& layer : workload.median)
      seconds += layer.forward + layer.backward + layer.update;
    most = std::max(most, seconds * simulation.compute_factor);
  }
  return most;
}

/// True if the fidelity coupled is proven to be within kCloseEnough of every message, for collectives that
/// never run at the same time: they proceed in lock step, or their lower bound is as long.
bool coupled_is_proven(const CollectiveLoad& traffic) {
  double gap = 0, least = 0;
  std::map<const Pattern*, bool> bounded, exact;
  for (const CollectiveLoad::One& one : traffic.collectives) {
    if (one.modelled) continue;
    const auto [all, is_new] = bounded.try_emplace(one.pattern, false);
    if (is_new) all->second = all_ranks_take_part(*one.schedule) && !kinds_share_links(*one.pattern);
    if (!all->second) return false;
    const double bound = least_seconds(*one.pattern, one.buffer);
    least += bound;
    if (one.seconds - bound <= kCloseEnough * one.seconds) continue;
    const auto [found, is_first] = exact.try_emplace(one.pattern, false);
    if (is_first) found->second = in_lock_step(*one.pattern, traffic.simulation.bandwidths);
    gap += found->second ? 0 : one.seconds - bound;
  }
  return gap <= kCloseEnough * std::max(least, least_compute(traffic.simulation));
}

/// The different collectives of a plan that are simulated: pattern and buffer, in the order of the plan.
std::vector<const CollectiveLoad::One*> different(const CollectiveLoad& traffic) {
  std::vector<const CollectiveLoad::One*> list;
  std::set<std::pair<const Pattern*, double>> known;
  for (const CollectiveLoad::One& one : traffic.collectives) {
    if (!one.modelled && known.insert({one.pattern, one.buffer.value}).second) list.push_back(&one);
  }
  return list;
}

/// Simulates each different collective alone, by some of its rounds, and sets the durations. Changes nothing
/// if that takes too long or the durations of rounds do not become constant.
/// @return whether the durations are set
bool sample(const CollectiveLoad& traffic, ChosenFidelity& chosen) {
  const auto all = different(traffic);
  double messages = 0;
  for (const auto* one : all) messages += sampled_messages(*one->pattern->schedule);
  if (messages > kMostSampled) return false;
  const bool together = std::ranges::all_of(
      all, [](const CollectiveLoad::One* one) { return all_ranks_take_part(*one->schedule); });
  const double most = together ? kCheapSampleMessages : kMostSampled;
  if (messages > most) return false;
  const Simulation& simulation = traffic.simulation;
  LinkSharing sharing = simulation.link_sharing;
  if (sharing == LinkSharing::automatic)
    sharing = affordable_by_simgrid(*simulation.plan, Fidelity::message, messages) ? LinkSharing::simgrid
                                                                                   : LinkSharing::max_min;
  double work = kWorkPerMessage * most;
  Sampling sampling(simulation.bandwidths, sharing);
  std::map<std::pair<const Pattern*, double>, double> known;
  for (const auto* one : all) {
    const auto sampled = sampling.time(*one->pattern, one->buffer, work);
    if (!sampled || sampled->error > kCloseEnough) return false;
    known[{one->pattern, one->buffer.value}] = sampled->seconds;
    work -= sampled->work;
  }
  for (const CollectiveLoad::One& one : traffic.collectives)
    chosen.seconds.push_back(one.modelled ? 0 : known.at({one.pattern, one.buffer.value}));
  chosen.link_sharing = sharing;
  return true;
}

/// Simulation of every message.
ChosenFidelity every_message(ChosenFidelity chosen) {
  chosen.fidelity = Fidelity::message;
  return chosen;
}

ChosenFidelity automatic(const CollectiveLoad& traffic, ComputeBudget budget, ChosenFidelity chosen) {
  const bool channels = !traffic.simulation.plan->channels.empty();
  if (!traffic.joint || (!traffic.folds && channels)) return every_message(std::move(chosen));
  chosen.fidelity = Fidelity::coupled;
  if (!runs_concurrently(traffic) && (coupled_is_proven(traffic) || sample(traffic, chosen))) return chosen;
  if (affordable(traffic, budget)) return every_message(std::move(chosen));
  chosen.accuracy = Accuracy::rough;
  return chosen;
}

/// The fidelity that the user asks for.
ChosenFidelity asked(const CollectiveLoad& traffic, ChosenFidelity chosen) {
  const Simulation& simulation = traffic.simulation;
  if (!traffic.folds && !simulation.plan->channels.empty()) return chosen;  // messages between single workers
  chosen.fidelity = simulation.fidelity;
  if (chosen.fidelity != Fidelity::message && (runs_concurrently(traffic) || !coupled_is_proven(traffic)))
    chosen.accuracy = Accuracy::rough;
  return chosen;
}

LinkSharing sharing_of(const CollectiveLoad& traffic, const ChosenFidelity& chosen) {
  const Simulation& simulation = traffic.simulation;
  if (simulation.link_sharing != LinkSharing::automatic) return simulation.link_sharing;
  if (!chosen.seconds.empty()) return chosen.link_sharing;  // that of the samples
  const CallsPerStep calls = estimated_calls(*simulation.plan);
  const double flows = calls.steps * flows_per_step(traffic, chosen, calls);
  return affordable_by_simgrid(*simulation.plan, chosen.fidelity, flows) ? LinkSharing::simgrid
                                                                         : LinkSharing::max_min;
}

}  // namespace

ChosenFidelity choose_fidelity(const CollectiveLoad& traffic, ComputeBudget budget) {
  const Simulation& simulation = traffic.simulation;
  const Plan& plan = *simulation.plan;
  ChosenFidelity chosen;
  chosen.segments = runs_concurrently(traffic) ? segments_of_phases(traffic) : 1;
  if (plan.asynchronous) {
    chosen.uses_bottleneck_sharing = uses_bottleneck_sharing(plan, simulation.fidelity);
    if (chosen.uses_bottleneck_sharing) chosen.accuracy = Accuracy::rough;
  } else if (simulation.fidelity == Fidelity::automatic) {
    chosen = automatic(traffic, budget, std::move(chosen));
  } else {
    chosen = asked(traffic, std::move(chosen));
  }
  chosen.may_be_short = chosen.fidelity == Fidelity::coupled &&
                        std::ranges::any_of(traffic.collectives, [](const CollectiveLoad::One& one) {
                          return !one.modelled && kinds_share_links(*one.pattern);
                        });
  if (!chosen.uses_bottleneck_sharing) chosen.link_sharing = sharing_of(traffic, chosen);
  return chosen;
}

}  // namespace stepcast
