#include "sim/form_rule.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "sim/bounds.hpp"
#include "sim/sample.hpp"
#include "sim/step_cost.hpp"

namespace stepcast {
namespace {

constexpr double kMostSampled = 5e5;  // messages of samples
constexpr double kWorkAMessage = 5;   // of samples (sim/sample.hpp), at most
constexpr double kSmallLatencyShare = 0.05;
constexpr double kUneven = 1.2;
constexpr double kCloseEnough = 0.003;                  // of a step: what bounds may leave open, and samples
constexpr int kLeastSegments = 8, kMostFlows = 30'000;  // a step

std::size_t busy_communicators(const Traffic& traffic) {
  std::set<int> busy;
  for (const Collective& collective : traffic.simulation.plan->collectives)
    busy.insert(collective.communicator);
  return busy.size();
}

bool several_at_once(const Traffic& traffic) {
  const Plan& plan = *traffic.simulation.plan;
  if (busy_communicators(traffic) > 1 || !plan.channels.empty()) return true;
  return std::ranges::any_of(plan.communicators,
                             [](const Communicator& one) { return one.streams > 1 && one.in_flight > 1; });
}

/// As many as a step's phases have rounds, unless that makes too many flows.
int segments_of_phases(const Traffic& traffic) {
  std::size_t phases = 1;
  for (const Traffic::One& one : traffic.collectives) phases += one.schedule->phases.size();
  return std::max(kLeastSegments, static_cast<int>(kMostFlows / phases));
}

/// Whether the slowest edge of a round holds up others, which share links with another collective's: those
/// take their share in bursts, which a flow at an even pace does not.
bool is_uneven(const Traffic& traffic, const Traffic::One& one) {
  const LinkBandwidths& bandwidths = traffic.simulation.bandwidths;
  return !bandwidths.as_built() || unevenness(*one.pattern, bandwidths) > kUneven;
}

/// Whether collectives that meet are known to be within 1 % of every message when coupled round by round.
bool is_close_together(const Traffic& traffic, int segments) {
  std::map<const Pattern*, bool> even;
  return std::ranges::all_of(traffic.collectives, [&](const Traffic::One& one) {
    const auto [found, is_new] = even.try_emplace(one.pattern, false);
    // Edges of a tree's round do not share what others leave.
    if (is_new) found->second = all_take_part(*one.schedule) && !is_uneven(traffic, one);
    const bool cut = std::ranges::any_of(one.schedule->phases,
                                         [&](const Phase& phase) { return phase.rounds > segments; });
    return found->second && (!cut || one.latency < kSmallLatencyShare * one.seconds);  // they lie together
  });
}

/// No step is shorter than the compute of its slowest role.
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

/// Of the form coupled, for collectives that never meet. Likely: all ranks are at work in every round, over
/// links as they were built. Where other traffic slows some of them the rest of a round waits, and loads its
/// links one after the other instead of together, by up to 9 % of the time.
Closeness closeness_alone(const Traffic& traffic) {
  double open = 0, least = 0;
  std::map<const Pattern*, bool> together, exact;
  for (const Traffic::One& one : traffic.collectives) {
    const auto [all, is_new] = together.try_emplace(one.pattern, false);
    if (is_new) all->second = all_take_part(*one.schedule);
    if (!all->second) return Closeness::unknown;
    const double bound = least_seconds(*one.pattern, one.buffer);
    least += bound;
    if (one.seconds - bound <= kCloseEnough * one.seconds) continue;
    const auto [found, is_first] = exact.try_emplace(one.pattern, false);
    if (is_first) found->second = in_lock_step(*one.pattern, traffic.simulation.bandwidths);
    open += found->second ? 0 : one.seconds - bound;
  }
  const double step = std::max(least, least_compute(traffic.simulation));
  if (open <= kCloseEnough * step) return Closeness::proven;
  return traffic.simulation.bandwidths.as_built() ? Closeness::likely : Closeness::unknown;
}

/// Seconds of every collective, each different one played by itself; none if that takes too long or rounds
/// do not settle. @param most  messages
std::optional<std::vector<double>> sampled(const Traffic& traffic, double most) {
  std::map<std::pair<const Pattern*, double>, double> known;
  double messages = 0;
  for (const Traffic::One& one : traffic.collectives) {
    const bool is_new = known.try_emplace({one.pattern, one.buffer.value}, 0).second;
    messages += is_new ? sampled_messages(*one.pattern->schedule) : 0;
  }
  if (messages > most) return std::nullopt;
  double work = kWorkAMessage * most;
  for (auto& [what, seconds] : known) {
    const auto played = sample(*what.first, {what.second}, traffic.simulation.bandwidths, work);
    if (!played || played->error > kCloseEnough) return std::nullopt;
    seconds = played->seconds;
    work -= played->work;
  }
  std::vector<double> seconds;
  for (const Traffic::One& one : traffic.collectives)
    seconds.push_back(known.at({one.pattern, one.buffer.value}));
  return seconds;
}

/// Every message, over MaxMinLinks.
ChosenForm all_messages(ChosenForm chosen) {
  chosen.form = Form::message;
  chosen.sharing = SimNetwork::Sharing::own;
  chosen.name = "message";
  return chosen;
}

ChosenForm automatic(const Traffic& traffic, Patience patience, ChosenForm chosen, bool several) {
  const bool channels = !traffic.simulation.plan->channels.empty();
  if (!traffic.joint || (!traffic.folds && channels)) return all_messages(std::move(chosen));
  chosen.form = Form::coupled;
  chosen.name = "coupled";
  if (several && is_close_together(traffic, chosen.segments)) return chosen;
  const Closeness close = several ? Closeness::unknown : closeness_alone(traffic);
  if (close == Closeness::proven) return chosen;
  if (!several && !traffic.simulation.plan->load_data) {
    if (auto seconds = sampled(traffic, close == Closeness::likely ? kFewSampled : kMostSampled)) {
      chosen.name = "message, sampled";
      chosen.seconds = std::move(*seconds);
      return chosen;
    }
  }
  if (close == Closeness::likely) return chosen;
  if (affordable(traffic, patience)) return all_messages(std::move(chosen));
  chosen.name = "coupled, roughly";
  chosen.roughly = true;
  return chosen;
}

}  // namespace

ChosenForm chosen_form(const Traffic& traffic, Patience patience) {
  const Simulation& simulation = traffic.simulation;
  const Plan& plan = *simulation.plan;
  const bool several = several_at_once(traffic);
  ChosenForm chosen;
  chosen.segments = several ? segments_of_phases(traffic) : 1;
  chosen.name = "message";
  if (plan.asynchronous) {
    chosen.shares_links = shares_links(plan, simulation.form);
    if (chosen.shares_links) chosen.name += ", shared";
    return chosen;
  }
  if (simulation.form == Form::automatic) return automatic(traffic, patience, std::move(chosen), several);
  if (!traffic.folds && !plan.channels.empty()) return chosen;  // messages between single workers
  chosen.form = simulation.form;
  chosen.name = form_names()[static_cast<std::size_t>(simulation.form)];
  return chosen;
}

}  // namespace stepcast
