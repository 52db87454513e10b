#include "scenarios/idle_options.hpp"

#include <algorithm>

#include "models/compression.hpp"

namespace stepcast {
namespace {

bool is_drawn(const Noise& noise) {
  return noise.jitter == Noise::Jitter::lognormal || noise.jitter == Noise::Jitter::layers;
}

void note_noise(const YamlMap& map, const Noise& noise, Plan& plan) {
  IdleKeys& idle = plan.idle_keys;
  const bool replays = std::ranges::any_of(
      plan.workloads, [](const Workload& workload) { return workload.samples.size() > 1; });
  if (noise.jitter == Noise::Jitter::trace && !replays)
    note_idle(map, {"jitter"}, "as trace: the trace has one sample a pass, nothing to replay", idle);
  if (!is_drawn(noise)) note_idle(map, {"sigma"}, "without jitter: lognormal or layers", idle);
  if (is_drawn(noise) && noise.sigma == 0) note_idle(map, {"jitter"}, "with sigma: 0", idle);
  if (noise.straggler_share > 0 && noise.straggler_factor == 1)
    note_idle(map, {"straggler_share"}, "with straggler_factor: 1", idle);
  if (noise.straggler_share == 0) note_idle(map, {"straggler_factor"}, "with straggler_share: 0", idle);
  if (noise.jitter == Noise::Jitter::none && noise.straggler_share == 0)
    note_idle(map, {"per"}, "without jitter or stragglers", idle);
  if (!plan.asynchronous) note_idle(map, {"start_spread"}, "where workers keep a common pace", idle);
}

void note_simulation(const YamlMap& map, Plan& plan) {
  const auto travels = [&](const Collective& one) {
    return plan.communicators[static_cast<std::size_t>(one.communicator)].size > 1 &&
           one.buffer.size.value > 0;
  };
  if (plan.asynchronous && std::ranges::none_of(plan.collectives, travels))
    note_idle(map, {"form"}, "without collectives", plan.idle_keys);
  if (std::ranges::all_of(plan.roles, [](const Role& role) { return role.members == 1; }))
    note_idle(map, {"fold"}, "where every worker has a program of its own", plan.idle_keys);
}

}  // namespace

void note_idle_options(const YamlMap& map, Experiment& experiment) {
  Plan& plan = experiment.plan;
  const YamlMap strategy = map.at("strategy").any_map();
  if (const auto threads = strategy.maybe("threads"); threads && threads->integer(1) == 1)
    note_idle(strategy, {"serial_share"}, "with threads: 1", plan.idle_keys);
  const auto compression = strategy.maybe("compression");
  if (!compression || compression->one_of(compression_names()) == 0)
    note_idle(map, {"compression_times"}, "without strategy.compression", plan.idle_keys);
  if (const auto noise = map.maybe("noise")) note_noise(noise->any_map(), experiment.noise, plan);
  if (plan.devices == 1) return;
  if (const auto simulation = map.maybe("simulation")) note_simulation(simulation->any_map(), plan);
}

}  // namespace stepcast
