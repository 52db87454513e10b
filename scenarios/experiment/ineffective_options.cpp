#include <algorithm>
#include <string_view>

#include "scenarios/experiment/experiment.hpp"

namespace stepcast {
namespace {

bool is_drawn(const Noise& noise) {
  return noise.jitter == Noise::Jitter::lognormal || noise.jitter == Noise::Jitter::layers;
}

void note_noise(const YamlMap& map, const Noise& noise, Plan& plan) {
  IneffectiveKeys& found = plan.ineffective_keys;
  const bool replays = std::ranges::any_of(
      plan.workloads, [](const Workload& workload) { return workload.samples.size() > 1; });
  if (noise.jitter == Noise::Jitter::trace && !replays)
    note_ineffective(map, {"jitter"}, "as trace: the trace has one sample a pass, nothing to replay", found);
  if (!is_drawn(noise)) note_ineffective(map, {"sigma"}, "without jitter: lognormal or layers", found);
  if (is_drawn(noise) && noise.sigma == 0) note_ineffective(map, {"jitter"}, "with sigma: 0", found);
  if (noise.straggler_share > 0 && noise.straggler_factor == 1)
    note_ineffective(map, {"straggler_share"}, "with straggler_factor: 1", found);
  if (!noise.per_node && !noise.stragglers.empty() &&
      noise.stragglers.begin()->first >= plan.endpoints.size())
    note_ineffective(map, {"stragglers"}, "where no worker has such a number", found);
  if (noise.straggler_share == 0)
    note_ineffective(map, {"straggler_factor"}, "with straggler_share: 0", found);
  if (noise.is_none()) note_ineffective(map, {"per"}, "without jitter or stragglers", found);
  if (!plan.asynchronous) note_ineffective(map, {"start_spread"}, "where workers keep a common pace", found);
  if (plan.asynchronous || plan.devices == 1)
    note_ineffective(map, {"device_spread"}, "where no workers keep a common pace", found);
}

void note_data(const YamlMap& map, IneffectiveKeys& found) {
  if (const auto ahead = map.maybe("prefetch"); ahead && ahead->integer(0) == 0)
    note_ineffective(map, {"compute_slowdown"}, "with prefetch: 0", found);
}

void note_simulation(const YamlMap& map, Plan& plan) {
  const auto travels = [&](const Collective& one) {
    return communicator_of(plan, one).size > 1 && one.buffer.size.value > 0;
  };
  if (plan.asynchronous && std::ranges::none_of(plan.collectives, travels))
    note_ineffective(map, {"fidelity"}, "without collectives", plan.ineffective_keys);
  if (std::ranges::all_of(plan.roles, [](const Role& role) { return role.members == 1; }))
    note_ineffective(map, {"fold"}, "where every worker has a program of its own", plan.ineffective_keys);
}

/// Keys of `kernels` and `memory` for layers that the network does not have.
void note_absent_layers(const YamlMap& map, const Model& model, IneffectiveKeys& found) {
  if (!has_layers(model, LayerKind::attention))
    note_ineffective(map, {"attention"}, "without layers of attention", found);
  if (!has_layers(model, LayerKind::gelu)) note_ineffective(map, {"gelu"}, "without layers of GELU", found);
  if (!has_layers(model, LayerKind::softmax_cross_entropy))
    note_ineffective(map, {"cross_entropy", "keep_logits", "fp32_logits"},
                     "without softmax and cross entropy", found);
}

void note_memory(const YamlMap& map, const Experiment& experiment, IneffectiveKeys& found) {
  note_absent_layers(map, experiment.model, found);
}

void note_kernels(const YamlMap& map, Experiment& experiment) {
  IneffectiveKeys& found = experiment.plan.ineffective_keys;
  note_absent_layers(map, experiment.model, found);
  const KernelChoice choice = experiment.device.choice();
  if (experiment.device.kernels->channel_multiple == 0 &&
      !has_layers(experiment.model, LayerKind::batch_norm))
    note_ineffective(map, {"layout"}, "without tensor cores and batch norm", found);
  if (choice.optimizer == KernelChoice::UpdateRule::sgd && choice.update == KernelChoice::Update::fused)
    note_ineffective(map, {"update"}, "as fused: sgd has one operation", found);
}

void note_network_rates(const YamlMap& strategy, Experiment& experiment) {
  const int nodes = nodes_in_use(experiment);
  for (const char* key : {"network_rate", "connection_rate"}) {
    const auto rate = strategy.maybe(key);
    const int count = key == std::string_view("network_rate") ? 1 : nodes - 1;
    if (rate && (nodes == 1 || experiment.platform.network.nic.bandwidth < count * rate->bytes_per_second()))
      note_ineffective(strategy, {key}, "with one server or slower NICs", experiment.plan.ineffective_keys);
  }
}

}  // namespace

void note_ineffective_options(const YamlMap& map, Experiment& experiment) {
  Plan& plan = experiment.plan;
  const YamlMap strategy = map.at("strategy").any_map();
  if (const auto threads = strategy.maybe("threads"); threads && threads->integer(1) == 1)
    note_ineffective(strategy, {"serial_share"}, "with threads: 1", plan.ineffective_keys);
  const bool derived = plan.trace_kind.starts_with("derived");
  if (!derived && experiment.platform.software.nccl == 0)
    note_ineffective(map, {"year"}, "with captured traces and without NCCL", plan.ineffective_keys);
  if (!derived)
    note_ineffective(strategy, {"host_operation"}, "with a captured trace", plan.ineffective_keys);
  else if (experiment.device.is_processor())
    note_ineffective(strategy, {"host_operation"}, "on a processor", plan.ineffective_keys);
  note_network_rates(strategy, experiment);
  const auto compression = strategy.maybe("compression");
  if (!compression || compression_words().read(*compression) == Compression::none)
    note_ineffective(map, {"compression_times"}, "without strategy.compression", plan.ineffective_keys);
  if (const auto kernels = map.maybe("kernels")) note_kernels(kernels->any_map(), experiment);
  if (const auto memory = map.maybe("memory"))
    note_memory(memory->any_map(), experiment, plan.ineffective_keys);
  if (const auto noise = map.maybe("noise")) note_noise(noise->any_map(), experiment.noise, plan);
  if (const auto data = map.maybe("data")) note_data(data->any_map(), plan.ineffective_keys);
  if (plan.devices == 1) return;
  if (const auto simulation = map.maybe("simulation")) note_simulation(simulation->any_map(), plan);
}

}  // namespace stepcast
