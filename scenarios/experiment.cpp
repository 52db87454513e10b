#include "scenarios/experiment.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "platforms/topology.hpp"
#include "scenarios/check_keys.hpp"
#include "scenarios/idle_options.hpp"
#include "scenarios/placement.hpp"
#include "scenarios/read_noise.hpp"
#include "scenarios/read_setting.hpp"
#include "strategies/strategy.hpp"

namespace stepcast {
namespace {

const std::vector<std::string> kKeys{"model",
                                     "trace",
                                     "passes",
                                     "platform",
                                     "workers",
                                     "batch_per_worker",
                                     "global_batch",
                                     "strategy",
                                     "noise",
                                     "placement",
                                     "background",
                                     "data",
                                     "memory",
                                     "simulation",
                                     "epoch",
                                     "faults",
                                     "campaign",
                                     "learning",
                                     "compression_times"};

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

void read_platform_and_device(const YamlValue& value, Library& library, Experiment& experiment) {
  const YamlValue tree = is_name(value) ? YamlValue(library.tree(value, "platforms"), "platform") : value;
  experiment.platform = read_platform(tree);
  experiment.device = library.device(tree.any_map().at("device"));
}

int read_workers(const YamlMap& map, const Platform& platform) {
  const YamlValue value = map.at("workers", "an integer >= 1");
  const int workers = static_cast<int>(value.integer(1, 10'000'000));
  if (workers > platform.devices()) {
    value.refuse(fmt::format(
        "{} workers, but platform {} has {} devices; set platform.nodes (the real one has {} nodes)", workers,
        platform.name, platform.devices(), platform.max_nodes));
  }
  return workers;
}

void read_data(const YamlValue& value, const Platform& platform, Setting& setting) {
  const YamlMap map = value.map({"sample_size", "prefetch"});
  if (platform.storage.kind == Storage::Kind::none)
    value.refuse("platform " + platform.name + " has no storage");
  setting.sample_size = map.at("sample_size", "bytes of one sample as stored").bytes(1);
  if (const auto ahead = map.maybe("prefetch")) setting.prefetch = static_cast<int>(ahead->integer(0, 1000));
}

/// Programs that write YAML turn `off` into `false`, so both spellings are taken.
Folding read_folding(const YamlValue& value) {
  static const std::vector<std::string> words{"automatic", "on", "off", "true", "false"};
  constexpr std::array meanings{Folding::automatic, Folding::always, Folding::never, Folding::always,
                                Folding::never};
  return meanings.at(value.one_of(words));
}

void read_simulation(const YamlValue& value, Experiment& experiment) {
  const YamlMap map = value.map({"steps", "seed", "form", "fold"});
  if (const auto seed = map.maybe("seed")) experiment.seed = static_cast<std::uint64_t>(seed->integer(0));
  if (const auto form = map.maybe("form")) experiment.form = static_cast<Form>(form->one_of(form_names()));
  if (const auto fold = map.maybe("fold")) experiment.fold = read_folding(*fold);
  if (const auto steps = map.maybe("steps")) experiment.steps = static_cast<int>(steps->integer(1, 100'000));
}

void read_epoch(const YamlValue& value, Experiment& experiment) {
  const YamlMap keys = value.map({"samples", "epochs"});
  experiment.epoch_samples = static_cast<double>(keys.at("samples", "an integer >= 1").integer(1));
  if (const auto epochs = keys.maybe("epochs")) experiment.epochs = epochs->number(1e-6);
}

std::vector<int> read_placement(const YamlMap& map, const Experiment& experiment) {
  PlacementRule rule = PlacementRule::packed;
  if (const auto named = map.maybe("placement"))
    rule = static_cast<PlacementRule>(named->one_of(placement_names()));
  return place_workers(experiment.platform, read_workers(map, experiment.platform), rule, experiment.seed);
}

void read_links(const YamlMap& map, Experiment& experiment) {
  experiment.bandwidths = LinkBandwidths(experiment.platform);
  if (const auto background = map.maybe("background"))
    read_background(*background, experiment.platform, experiment.bandwidths);
}

Plan read_plan(const YamlMap& map, Experiment& experiment, Library& library) {
  const YamlValue trace = map.at("trace", "names in models/traces/, or derived");
  const YamlValue options = map.at("strategy", "a mapping with kind");
  const std::size_t kind = options.any_map().at("kind", "a strategy").one_of(strategy_names());
  Setting setting{experiment.model, experiment.device, experiment.platform, read_placement(map, experiment)};
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
  if (const auto data = map.maybe("data")) read_data(*data, experiment.platform, setting);
  if (const auto memory = map.maybe("memory")) setting.memory = read_memory(*memory);
  experiment.strategy = strategies()[kind].kind;
  return strategies()[kind].plan(options, setting);
}

/// What happens to whole trainings. Their length must be known.
void read_training(const YamlMap& map, Experiment& experiment) {
  const auto check_length = [&](const YamlValue& value, double steps) {
    if (steps == 0 && experiment.epochs == 0)
      value.refuse("how long is a training? give epoch: {samples, epochs}, or steps here");
  };
  if (const auto faults = map.maybe("faults")) {
    experiment.faults = read_faults(*faults, experiment.plan, experiment.platform, experiment.strategy);
    check_length(*faults, experiment.faults->steps);
  }
  if (const auto campaign = map.maybe("campaign")) {
    experiment.campaign = read_campaign(*campaign, experiment.plan, experiment.platform);
    check_length(*campaign, experiment.faults ? experiment.faults->steps : experiment.campaign->steps);
  }
}

}  // namespace

void check_keys(const YamlNode& document) {
  YamlValue(document, "").map(kKeys);
}

Experiment build_experiment(YamlNode document, std::vector<Assignment> values, Library& library) {
  apply(document, std::move(values), library);
  const YamlMap map = YamlValue(document, "").map(kKeys);
  Experiment experiment;
  const YamlValue model = map.at("model", "a name in models/");
  experiment.model = is_name(model) ? library.model(model) : read_model(model);
  read_platform_and_device(map.at("platform", "a name in platforms/"), library, experiment);
  if (const auto noise = map.maybe("noise")) experiment.noise = read_noise(*noise);
  if (const auto simulation = map.maybe("simulation")) read_simulation(*simulation, experiment);
  if (const auto epoch = map.maybe("epoch")) read_epoch(*epoch, experiment);
  experiment.plan = read_plan(map, experiment, library);
  if (const auto learning = map.maybe("learning")) experiment.learning = read_learning(*learning);
  note_idle_options(map, experiment);
  read_links(map, experiment);
  read_training(map, experiment);
  return experiment;
}

}  // namespace stepcast
