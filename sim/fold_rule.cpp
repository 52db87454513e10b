#include "sim/fold_rule.hpp"

#include <algorithm>

#include "sim/traffic.hpp"

namespace stepcast {
namespace {

/// Whether workers of a role are several groups of a communicator, or send each other messages one by one.
bool has_groups(const Traffic& traffic) {
  const Plan& plan = *traffic.simulation.plan;
  const auto many = [&](int role) { return plan.roles[static_cast<std::size_t>(role)].members > 1; };
  if (std::ranges::any_of(plan.channels,
                          [&](const auto& one) { return many(one.first) && many(one.second); }))
    return true;
  const auto folded = folded_ranks(plan);
  return std::ranges::any_of(traffic.collectives, [&](const Traffic::One& one) {
    const Communicator& all = plan.communicators[static_cast<std::size_t>(one.communicator)];
    return all.groups() > 1 &&
           std::ranges::any_of(all.ranks, [&](int rank) { return folded[static_cast<std::size_t>(rank)]; });
  });
}

}  // namespace

ChosenFolding chosen_folding(const Traffic& traffic, Patience patience,
                             const std::function<std::vector<SingleMessages>()>& singles) {
  const Simulation& simulation = traffic.simulation;
  if (simulation.fold == Folding::never) return {false, "unfolded"};
  if (simulation.plan->asynchronous || !has_groups(traffic)) return {true, "folded"};
  const Noise& noise = simulation.noise;
  const bool jitters = noise.jitter != Noise::Jitter::none || noise.straggler_share > 0;
  if (!jitters && workers_alike(traffic, singles())) return {true, "folded"};
  if (simulation.fold == Folding::automatic && simulation.form == Form::message) return {false, "unfolded"};
  const bool cheap = simulation.form == Form::coupled || simulation.form == Form::fluid;
  if (simulation.fold == Folding::automatic && !cheap && worth_trying(traffic, patience))
    return {false, "unfolded"};
  return {true, "folded, roughly", true};
}

}  // namespace stepcast
