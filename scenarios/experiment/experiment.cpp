#include "scenarios/experiment/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/layer_times/compression_times.hpp"
#include "platforms/topology.hpp"
#include "scenarios/experiment/noise_and_data.hpp"
#include "scenarios/experiment/run_keys.hpp"
#include "scenarios/experiment/software_stack.hpp"
#include "scenarios/experiment/times_and_memory.hpp"
#include "scenarios/experiment/usual_kernels.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/sweep.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

/// Of GPUs of one model: the speeds of a cluster's GPUs differ by 8 % (mean of five clusters and of several
/// applications), and a normal law's box plot is 5.4 standard deviations wide from whisker to whisker.
/// Source: P. Sinha et al., Not All GPUs Are Created Equal (SC22), arXiv:2208.11035, abstract; that the 8 %
/// are the whiskers of a normal law is assumed.
constexpr double kUsualDeviceSpread = 0.015;

auto depth(const Assignment& one) {
  return std::count(one.path.begin(), one.path.end(), '.');
}

/// Sets the values. If a path leads into `platform` or `model`, the content of that file first replaces its
/// name.
void apply(YamlNode& document, std::vector<Assignment> values, Library& library) {
  std::stable_sort(values.begin(), values.end(),
                   [](const auto& a, const auto& b) { return depth(a) < depth(b); });
  for (const Assignment& one : values) {
    for (const auto& [key, folder] : {std::pair{"platform", "platforms"}, std::pair{"model", "models"}}) {
      if (!one.path.starts_with(std::string(key) + ".")) continue;
      const YamlNode* named = document.find(key);
      if (named != nullptr && named->kind == YamlNode::Kind::scalar) {
        const YamlNode file = library.tree(YamlValue(*named, key), folder);
        assign(document, {key, file});
      }
    }
    assign(document, one);
  }
}

bool is_name(const YamlValue& value) {
  return value.is(YamlNode::Kind::scalar);
}

Model read_network(const YamlValue& value, Library& library) {
  return is_name(value) ? library.model(value) : read_model(value);
}

void read_platform_and_device(const YamlValue& value, Library& library, Experiment& experiment) {
  const YamlValue tree = is_name(value) ? YamlValue(library.tree(value, "platforms"), "platform") : value;
  experiment.platform = library.platform(tree);
  experiment.device = library.device(tree.any_map().at("device"));
}

void apply(const SimulationOptions& simulation, Experiment& experiment) {
  experiment.seed = simulation.seed;
  experiment.fidelity = simulation.fidelity;
  experiment.fold = simulation.fold;
  experiment.link_sharing = simulation.sharing;
}

/// A processor is its own host.
void read_host(const YamlNode& document, Device& device) {
  const YamlNode* time = find_path(document, "strategy.host_operation");
  if (time == nullptr || device.is_processor()) return;
  device.host_operation = YamlValue(*time, "strategy.host_operation").seconds();
}

void scale_kernels(const Factors& factors, Device& device) {
  device.launch_overhead = factors.kernel_start * device.launch_overhead;
  if (device.fp8) device.fp8->kernels.dense /= factors.fp8_products;
  if (!device.kernels) return;
  KernelShares& shares = *device.kernels;
  shares.gap = factors.kernel_start * shares.gap;
  shares.flash /= factors.flash_attention;
  for (double* share :
       {&shares.streaming, &shares.max_pool, &shares.batch_norm, &shares.layer_norm, &shares.cast})
    *share /= factors.memory_bound_kernels;
}

/// Applies `factors:` to the platform and the device.
void apply(const Factors& factors, Experiment& experiment) {
  Platform& platform = experiment.platform;
  NodeShape& node = platform.node;
  const double inside = factors.inside_server_bandwidth;
  for (Link* link : {&node.device, &node.pcie_switch, &node.inter_socket, &node.memory, &node.peer})
    link->bandwidth = inside * link->bandwidth;
  node.staging = inside * node.staging;
  BytesPerSecond& nic = platform.network.nic.bandwidth;
  nic = factors.between_servers_bandwidth * nic;
  for (auto* costs :
       {&platform.message_costs, &platform.local_message_costs, &platform.local_program_costs}) {
    for (MessageCost& cost : *costs) cost.overhead = factors.message_overhead * cost.overhead;
  }
  scale_kernels(factors, experiment.device);
}

/// Makes no NIC faster than what `count` times the rate at `key` moves, if the document has it.
void limit_network(const YamlNode& document, const char* key, int count, Platform& platform) {
  const YamlNode* rate = find_path(document, key);
  if (rate == nullptr || count == 0) return;
  BytesPerSecond& nic = platform.network.nic.bandwidth;
  nic = std::min(nic, count * YamlValue(*rate, key).bytes_per_second());
}

/// Multiplies layer times by `factors.layer_times`, and the host's by `factors.host_work`.
void scale_times(const Factors& factors, YamlNode& document) {
  if (const YamlNode* layers = find_path(document, "factors.layer_times"))
    assign(document, {"strategy.compute_factor", YamlNode(*layers)});
  if (find_path(document, "factors.host_work") == nullptr) return;
  for (const char* key : {"strategy.host_work", "strategy.host_turn", "strategy.host_operation"}) {
    const YamlNode* time = find_path(document, key);
    if (time == nullptr) continue;
    YamlNode scaled = *time;
    scaled.text = fmt::format("{:.17g} s", factors.host_work * YamlValue(*time, key).seconds().value);
    assign(document, {key, scaled});
  }
}

int read_workers(const YamlMap& map, const Platform& platform, const Overrides& overrides) {
  if (overrides.ranks) return workers_of_ranks(map, *overrides.ranks);
  const YamlValue value = map.at("workers", "an integer >= 1");
  const int workers = value.integer(1, 10'000'000);
  if (workers > platform.devices()) {
    value.refuse(fmt::format(
        "expected at most {} workers, the devices of platform {}, got {}; set platform.nodes (at most {})",
        platform.devices(), platform.name, workers, platform.max_nodes));
  }
  return workers;
}

/// Messages that choose their routes are simulated one by one, by the solver that knows the load of the
/// links.
void apply_adaptive_routes(const YamlNode& document, Experiment& experiment) {
  if (!experiment.platform.has_adaptive_routes()) return;
  const auto refuse = [&document](const char* key, const char* valid) {
    YamlValue(*find_path(document, key), key)
        .refuse(fmt::format("only automatic or {} with routing: adaptive", valid));
  };
  if (experiment.fidelity == Fidelity::fluid || experiment.fidelity == Fidelity::coupled)
    refuse("simulation.fidelity", "message");
  if (experiment.link_sharing == LinkSharing::simgrid) refuse("simulation.sharing", "max_min");
  experiment.fidelity = Fidelity::message;
  experiment.link_sharing = LinkSharing::max_min;
}

void read_links(const YamlMap& map, Experiment& experiment) {
  experiment.bandwidths = LinkBandwidths(experiment.platform);
  if (const auto background = map.maybe("background"))
    read_background(*background, experiment.platform, experiment.bandwidths);
}

/// True if every rank that trains has samples of its own.
bool has_own_samples(const Plan& plan) {
  int ranks = 0;
  for (const Role& role : plan.roles) ranks += role.training ? role.members : 0;
  return plan.samples_a_step == 1.0 * ranks * plan.batch_per_worker;
}

const Strategy& strategy_of(const YamlMap& map) {
  const YamlValue options = map.at("strategy", "a mapping with kind");
  return strategies()
      [map_with_kind(options, strategy_names()).at("kind", "a strategy").one_of(strategy_names())];
}

int usual_steps(const YamlMap& map, const Noise& noise) {
  constexpr int kStepsOfJitter = 20;
  const Strategy& strategy = strategy_of(map);
  const int least = noise.jitter == Noise::Jitter::none ? 1 : kStepsOfJitter;
  return strategy.usual_steps == nullptr ? least : std::max(least, strategy.usual_steps(map.at("strategy")));
}

Plan read_plan(const YamlMap& map, PlacementRule placement, Experiment& experiment, Library& library,
               const Overrides& overrides) {
  const YamlValue trace = map.at("trace", "names in models/traces/, or derived");
  const Strategy& strategy = strategy_of(map);
  Setting setting{experiment.model, experiment.device, experiment.platform,
                  place_workers(experiment.platform, read_workers(map, experiment.platform, overrides),
                                placement, experiment.seed)};
  setting.measured = overrides.measured;
  setting.steps = experiment.steps;
  setting.epoch_samples = experiment.epoch_samples;
  const auto passes = map.maybe("passes");
  setting.times = read_times(trace, experiment.model, experiment.device, library,
                             passes ? read_passes(*passes, experiment.model) : std::vector<PassCounts>{});
  setting.part_trace = read_part_traces(trace, experiment.model, experiment.device, library);
  setting.named_trace = [&library](const YamlValue& name) -> const Trace& { return library.trace(name); };
  const auto compression = map.maybe("compression_times");
  setting.compression = read_compression_times(compression, experiment.device, library);
  setting.host_compression = read_host_compression_times(compression, library);
  setting.trace_batch = trace_batch(trace, library);
  setting.batch_per_worker = map.maybe("batch_per_worker");
  setting.global_batch = map.maybe("global_batch");
  if (setting.batch_per_worker && setting.global_batch)
    setting.global_batch->refuse("give either batch_per_worker or global_batch");
  if (overrides.trace && !setting.batch_per_worker && !setting.global_batch)
    map.value().refuse("this command needs batch_per_worker, the samples of one step of a worker");
  if (const auto data = map.maybe("data")) read_data(*data, experiment.platform, setting, experiment.noise);
  setting.memory = read_memory(map.maybe("memory"), experiment.device.choice());
  experiment.strategy = strategy.kind;
  Plan plan = strategy.plan(map.at("strategy"), setting);
  if (experiment.noise.imbalance > 0 && !has_own_samples(plan))
    map.at("data").any_map().at("imbalance").refuse("only valid where every worker has samples of its own");
  return plan;
}

/// Reads faults and the campaign, which need the length of a training.
void read_training(const YamlMap& map, Experiment& experiment) {
  const auto check_length = [&](const YamlValue& value, double steps) {
    if (steps == 0 && experiment.epochs == 0)
      value.refuse("the length of a training is unknown: give epoch: {samples, epochs}, or steps here");
  };
  if (const auto faults = map.maybe("faults")) {
    experiment.faults = read_faults(*faults, experiment.plan, experiment.platform, experiment.strategy);
    check_length(*faults, experiment.faults->steps);
  }
  if (const auto campaign = map.maybe("campaign")) {
    experiment.campaign = read_campaign(*campaign, experiment.plan, experiment.platform);
    double& steps = experiment.campaign->steps;
    if (steps == 0 && experiment.epochs == 0 && experiment.learning) {
      const Plan& plan = experiment.plan;
      const double samples = 1.0 * plan.batch_per_worker * plan.workers;
      steps = std::max(1.0, experiment.learning->mini_batches * samples / plan.samples_a_step);
    }
    check_length(*campaign, experiment.faults ? experiment.faults->steps : experiment.campaign->steps);
  }
}

}  // namespace

int nodes_in_use(const Experiment& experiment) {
  std::set<int> nodes;
  for (const int endpoint : experiment.plan.endpoints) nodes.insert(experiment.platform.node_of(endpoint));
  return nodes.size();
}

void check_keys(const YamlNode& document) {
  read_map(YamlValue(document, ""), run_keys());
}

YamlNode document_with(YamlNode document, std::vector<Assignment> values, Library& library) {
  apply(document, std::move(values), library);
  return document;
}

namespace {

/// Sets the values, and NCCL's version by `year`, unless the platform is the user's own or a value sets its
/// software.
void apply_with_year(YamlNode& document, std::vector<Assignment> values, Library& library) {
  const YamlNode* platform = document.find("platform");
  const bool named =
      platform == nullptr || (platform->kind == YamlNode::Kind::scalar && !platform->text.ends_with(".yaml"));
  const bool usual = named && std::ranges::none_of(values, [](const Assignment& one) {
                       return one.path.starts_with("platform.software");
                     });
  apply(document, std::move(values), library);
  const auto nccl = usual ? nccl_of_year(document, library) : std::nullopt;
  if (nccl) apply(document, {*nccl}, library);
}

}  // namespace

Experiment build_experiment(YamlNode document, std::vector<Assignment> values, Library& library,
                            const Overrides& overrides) {
  for (Assignment& value : file_values(overrides)) values.push_back(std::move(value));
  apply_with_year(document, std::move(values), library);
  std::vector<std::string> of_stack = apply_software_stack(document, library);
  const YamlNode* named = find_path(document, "factors");
  const Factors factors = named == nullptr ? Factors{} : read_factors(YamlValue(*named, "factors"));
  scale_times(factors, document);
  const YamlMap map = read_map(YamlValue(document, ""), run_keys());
  Experiment experiment;
  const YamlValue model = map.at("model", "a name in models/");
  experiment.model = read_network(model, library);
  if (is_name(model)) experiment.model_name = model.node();
  read_platform_and_device(map.at("platform", "a name in platforms/"), library, experiment);
  const YamlNode given = document.find("kernels") == nullptr ? YamlNode{} : *document.find("kernels");
  // Times that a run measures are those of kernels that it has.
  if (!overrides.trace) apply_usual_kernels(document, experiment.model, experiment.device);
  for (const std::string& path : apply_stack_kernels(document, given, library)) of_stack.push_back(path);
  if (const auto kernels = map.maybe("kernels"))
    experiment.device = read_kernels(*kernels, map.at("trace", "derived"), experiment.device);
  read_host(document, experiment.device);
  apply(factors, experiment);
  limit_network(document, "strategy.network_rate", 1, experiment.platform);
  const RunKeys keys = read_run_keys(map);
  if (keys.noise) experiment.noise = *keys.noise;
  if (!keys.noise && !experiment.device.is_processor()) experiment.noise.device_spread = kUsualDeviceSpread;
  experiment.noise.jitter = overrides.jitter.value_or(experiment.noise.jitter);
  apply(keys.simulation, experiment);
  experiment.seed += overrides.more_seed;
  experiment.steps =
      overrides.steps ? *overrides.steps : keys.simulation.steps.value_or(usual_steps(map, experiment.noise));
  if (const auto epoch = map.maybe("epoch")) {
    const DataSetSize size = read_epoch(*epoch, experiment.model);
    experiment.epoch_samples = size.samples;
    experiment.epochs = size.epochs;
  }
  experiment.plan = read_plan(map, keys.placement, experiment, library, overrides);
  limit_network(document, "strategy.connection_rate", nodes_in_use(experiment) - 1, experiment.platform);
  experiment.plan.compute_slowdown *= factors.compute_slowdown;
  experiment.learning = keys.learning;
  if (experiment.learning) apply_training(overrides, *experiment.learning);
  note_ineffective_options(map, experiment);
  std::erase_if(experiment.plan.ineffective_keys, [&](const IneffectiveKey& one) {
    return std::ranges::find(of_stack, one.key) != of_stack.end();
  });
  read_links(map, experiment);
  read_training(map, experiment);
  apply_adaptive_routes(document, experiment);
  return experiment;
}

}  // namespace stepcast
