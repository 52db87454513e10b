#include "scenarios/experiment.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <numeric>

#include "platforms/topology.hpp"
#include "scenarios/placement.hpp"
#include "scenarios/read_strategy.hpp"
#include "scenarios/times.hpp"
#include "strategies/buckets.hpp"

namespace stepcast {
namespace {

const std::vector<std::string> kKeys{
    "model", "trace",     "platform",   "workers", "batch_per_worker", "global_batch", "strategy",
    "noise", "placement", "background", "data",    "memory",           "simulation",   "epoch"};

auto depth(const Assignment& one) {
  return std::count(one.path.begin(), one.path.end(), '.');
}

/// Sets the values; before one goes inside `platform` or `model`, that file takes the place of its name.
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

Platform platform_of(const YamlValue& value, Library& library) {
  return is_name(value) ? read_platform(YamlValue(library.tree(value, "platforms"), "platform"))
                        : read_platform(value);
}

/// `trace: NAME`, `trace: [NAME, ...]` or `trace: derived`, for a micro-batch of `batch` samples.
LayerTimes times_of(const YamlValue& value, const Experiment& experiment, std::int64_t batch,
                    Library& library) {
  if (is_name(value) && value.text() == "derived") {
    const Trace trace = derive(experiment.model, batch, experiment.device,
                               library.calibration(experiment.device), {nullptr, 1});
    return layer_times(experiment.model, {&trace}, batch);
  }
  std::vector<const Trace*> traces;
  for (const YamlValue& name : is_name(value) ? std::vector<YamlValue>{value} : value.list()) {
    traces.push_back(&library.trace(name));
    if (traces.back()->model != experiment.model.name) {
      name.refuse(fmt::format("is a trace of {}, not of {}", traces.back()->model, experiment.model.name));
    }
  }
  if (traces.empty()) value.expected("at least one trace");
  return layer_times(experiment.model, traces, batch);
}

/// Trace batch that a scenario means when it gives none.
std::int64_t default_batch(const YamlValue& trace, Library& library) {
  if (is_name(trace) && trace.text() == "derived") return 1;
  const auto names = is_name(trace) ? std::vector<YamlValue>{trace} : trace.list();
  if (names.empty()) trace.expected("at least one trace");
  return library.trace(names.front()).batch;
}

void read_workers(const YamlMap& map, Experiment& experiment, Library& library) {
  const YamlValue workers = map.at("workers", "an integer >= 1");
  experiment.workers = static_cast<int>(workers.integer(1, 10'000'000));
  const std::int64_t most = static_cast<std::int64_t>(experiment.platform.devices());
  if (experiment.workers > most) {
    workers.refuse(fmt::format(
        "{} workers, but platform {} has {} devices; set platform.nodes (the real one has {} nodes)",
        experiment.workers, experiment.platform.name, most, experiment.platform.max_nodes));
  }
  if (map.has("batch_per_worker") && map.has("global_batch")) {
    map.at("global_batch").refuse("give either batch_per_worker or global_batch");
  }
  if (const auto batch = map.maybe("batch_per_worker")) {
    experiment.batch_per_worker = batch->integer(1, 1'000'000'000);
  } else if (const auto global = map.maybe("global_batch")) {
    const std::int64_t samples = global->integer(1, 1'000'000'000);
    if (samples % experiment.workers != 0) {
      global->refuse(
          fmt::format("{} samples cannot be shared evenly by {} workers", samples, experiment.workers));
    }
    experiment.batch_per_worker = samples / experiment.workers;
  } else {
    experiment.batch_per_worker = default_batch(map.at("trace"), library) * experiment.strategy.micro_batches;
  }
  if (experiment.batch_per_worker % experiment.strategy.micro_batches != 0) {
    map.value().refuse(
        fmt::format("batch of {} a worker cannot be cut into {} micro-batches (strategy.accumulation)",
                    experiment.batch_per_worker, experiment.strategy.micro_batches));
  }
}

std::vector<LayerGradients> gradients_of(const Model& model, double element_bytes) {
  std::vector<LayerGradients> gradients;
  for (const Layer& layer : model.layers) {
    gradients.emplace_back();
    for (const ParameterTensor& tensor : layer.parameters) {
      if (tensor.trainable)
        gradients.back().push_back({element_bytes * static_cast<double>(tensor.elements())});
    }
  }
  return gradients;
}

/// Sum and sum of squares of every channel, in fp32.
Bytes statistics_of(const Layer& layer) {
  return {layer.kind == LayerKind::batch_norm ? 8.0 * static_cast<double>(layer.output.front()) : 0.0};
}

void fill_workload(Experiment& experiment, LayerTimes times, const StrategyOptions& options) {
  Workload& workload = experiment.workload;
  for (const Layer& layer : experiment.model.layers) {
    workload.layer_names.push_back(layer.name);
    workload.statistics.push_back(options.synchronous.synchronized_batch_norm ? statistics_of(layer)
                                                                              : Bytes{});
  }
  const auto scale = [&](std::vector<LayerSeconds>& layers) {
    for (LayerSeconds& layer : layers) {
      layer.forward *= options.compute_factor;
      layer.backward *= options.compute_factor;
      layer.update *= options.compute_factor;
    }
  };
  scale(times.median);
  for (auto& sample : times.samples) scale(sample);
  workload.median = std::move(times.median);
  workload.samples = std::move(times.samples);
  workload.buckets =
      gradient_buckets(gradients_of(experiment.model, options.half_gradients ? 2 : 4), options.bucket);
  experiment.trace_kind = times.kind;
  experiment.flags = std::move(times.flags);
}

void read_background(const YamlValue& value, const Topology& topology,
                     std::vector<BytesPerSecond>& bandwidths) {
  for (const YamlValue& item : value.list()) {
    const YamlMap map = item.map({"links", "share"});
    const std::string pattern = map.at("links", "link names, such as \"leaf 0 *\"").text();
    const double share = map.at("share", "a number from 0 to 0.99").number(0, 0.99);
    bool any = false;
    for (int link = 0; link < topology.link_count(); ++link) {
      if (fnmatch(pattern.c_str(), topology.link_name(link).c_str(), 0) != 0) continue;
      auto& bandwidth = bandwidths[static_cast<std::size_t>(link)];
      bandwidth = (1 - share) * bandwidth;
      any = true;
    }
    if (!any)
      map.at("links").expected(
          fmt::format("names of links, such as \"{}\" (* stands for anything)", topology.link_name(0)));
  }
}

void place(const YamlMap& map, Experiment& experiment) {
  PlacementRule rule = PlacementRule::packed;
  if (const auto named = map.maybe("placement"))
    rule = static_cast<PlacementRule>(named->one_of(placement_names()));
  experiment.devices = place_workers(experiment.platform, experiment.workers, rule, experiment.seed);
  experiment.ranks_per_node = even_ranks_per_node(experiment.platform, experiment.devices);
  const Topology topology(experiment.platform);
  for (int link = 0; link < topology.link_count(); ++link)
    experiment.bandwidths.push_back(topology.link(link).bandwidth);
  if (const auto background = map.maybe("background"))
    read_background(*background, topology, experiment.bandwidths);
}

void read_data(const YamlValue& value, Experiment& experiment) {
  const YamlMap map = value.map({"sample_size", "prefetch"});
  if (experiment.platform.storage.kind == Storage::Kind::none)
    value.refuse("platform " + experiment.platform.name + " has no storage");
  const double samples = static_cast<double>(experiment.batch_per_worker) /
                         static_cast<double>(experiment.strategy.micro_batches);
  experiment.workload.input = samples * map.at("sample_size", "bytes of one sample as stored").bytes();
  experiment.load_data = true;
  if (const auto ahead = map.maybe("prefetch"))
    experiment.strategy.prefetch = static_cast<int>(ahead->integer(0, 1000));
}

void read_memory(const YamlMap& map, const StrategyOptions& options, Experiment& experiment) {
  MemoryOptions memory;
  memory.batch = experiment.batch_per_worker / experiment.strategy.micro_batches;
  if (options.half_gradients) memory.precision = MemoryOptions::Precision::mixed;
  if (options.synchronous.recompute) memory.recomputation = MemoryOptions::Recomputation::blocks;
  if (const auto value = map.maybe("memory")) {
    const YamlMap keys = value->map({"optimizer", "in_place", "free_error_signals", "workspace"});
    if (const auto named = keys.maybe("optimizer")) {
      memory.optimizer = static_cast<MemoryOptions::Optimizer>(
          named->one_of({"sgd", "momentum", "adagrad", "rmsprop", "adam"}));
    }
    if (const auto yes = keys.maybe("in_place"); yes && yes->boolean())
      memory.activations = MemoryOptions::Activations::in_place;
    if (const auto yes = keys.maybe("free_error_signals"); yes && yes->boolean()) {
      memory.error_signals = MemoryOptions::ErrorSignals::freed;
    }
    if (const auto space = keys.maybe("workspace")) memory.workspace = space->bytes();
  }
  experiment.memory = training_memory(experiment.model, memory);
  experiment.fits = fits(experiment.memory, experiment.device);
}

void read_simulation(const YamlValue& value, Experiment& experiment) {
  const YamlMap map = value.map({"steps", "seed", "form", "fold"});
  if (const auto steps = map.maybe("steps"))
    experiment.strategy.steps = static_cast<int>(steps->integer(1, 100'000));
  if (const auto seed = map.maybe("seed")) experiment.seed = static_cast<std::uint64_t>(seed->integer(0));
  if (const auto form = map.maybe("form")) experiment.form = static_cast<Form>(form->one_of(form_names()));
  if (const auto fold = map.maybe("fold")) experiment.fold = fold->boolean();
}

}  // namespace

Experiment build_experiment(YamlNode document, std::vector<Assignment> values, Library& library) {
  apply(document, std::move(values), library);
  const YamlMap map = YamlValue(document, "").map(kKeys);
  Experiment experiment;
  const YamlValue model = map.at("model", "a name in models/");
  experiment.model = is_name(model) ? library.model(model) : read_model(model);
  experiment.platform = platform_of(map.at("platform", "a name in platforms/"), library);
  experiment.device = library.device(experiment.platform.device_name);
  const StrategyOptions options = read_strategy(map.at("strategy", "a mapping with kind: synchronous"));
  experiment.strategy = options.synchronous;
  experiment.communication = options.communication;
  if (const auto noise = map.maybe("noise")) experiment.noise = read_noise(*noise);
  if (const auto simulation = map.maybe("simulation")) read_simulation(*simulation, experiment);
  const YamlValue trace = map.at("trace", "names in models/traces/, or derived");
  read_workers(map, experiment, library);
  const std::int64_t micro_batch = experiment.batch_per_worker / experiment.strategy.micro_batches;
  fill_workload(experiment, times_of(trace, experiment, micro_batch, library), options);
  place(map, experiment);
  if (const auto data = map.maybe("data")) read_data(*data, experiment);
  read_memory(map, options, experiment);
  if (const auto epoch = map.maybe("epoch")) {
    const YamlMap keys = epoch->map({"samples", "epochs"});
    experiment.epoch_samples = static_cast<double>(keys.at("samples", "an integer >= 1").integer(1));
    if (const auto epochs = keys.maybe("epochs")) experiment.epochs = epochs->number(0);
  }
  return experiment;
}

}  // namespace stepcast
