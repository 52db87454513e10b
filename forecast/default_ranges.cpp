#include "forecast/default_ranges.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "forecast/discrepancy.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {
namespace {

const std::vector<std::string> kClasses{"measured", "published", "data_sheet", "assumed"};
const std::string kSlowdown = "compute_beside_communication", kSpread = "spread_of_steps",
                  kBetween = "link_between_servers", kInside = "link_inside_server",
                  kKernels = "start_of_kernels", kSingle = "kernels_single_precision",
                  kHalf = "kernels_half_precision", kTransformer = "kernels_of_transformers",
                  kMemoryBound = "kernels_memory_bound", kAttention = "kernels_attention",
                  kFp8 = "kernels_fp8", kDevices = "spread_of_devices", kHost = "host_work";
/// Ranges of the times of kernels.
const std::vector<std::string> kOfKernels{kKernels,     kSingle,    kHalf, kTransformer,
                                          kMemoryBound, kAttention, kFp8};

/// An entry of the file.
struct Entry {
  DefaultRange range;  ///< with the class and the range that apply
  std::vector<std::string> replaced_by;
  bool off = false;
};

bool is_of_kernels(const std::string& kind) {
  return std::ranges::find(kOfKernels, kind) != kOfKernels.end();
}

/// True if NCCL's data goes from device to device over InfiniBand or RoCE, as in the ten tables between nodes
/// of which its model is 9.9 % too fast at most and 4.3 % too slow (docs/notes/2026-11-nccl-tests.csv).
bool is_direct(const Software& software) {
  return software.nccl > 0 && software.library == Software::Library::nccl && software.gpudirect &&
         software.transport == Software::Transport::verbs;
}

/// The class that the scenario names for this kind, or the entry's own; for kernels, that of the device's
/// shares; for a network, what is known of the library. "none" turns the range off.
std::string class_of(const Scenario& scenario, const std::string& kind, const YamlMap& map,
                     const Experiment& largest) {
  const auto named = scenario.uncertainty.classes.find(kind);
  if (named == scenario.uncertainty.classes.end()) {
    if (kind != kKernels && is_of_kernels(kind) && largest.device.kernels_assumed) return "assumed";
    if (kind == kBetween && is_direct(largest.platform.software)) return "published";
    return kClasses[map.at("class").one_of(kClasses)];
  }
  const YamlValue value(named->second, "uncertainty." + kind);
  auto words = kClasses;
  words.push_back("none");
  return words[value.one_of(words)];
}

Entry read_entry(const YamlValue& value, const Scenario& scenario, const Experiment& largest) {
  const YamlMap map = value.map({"kind", "key", "law", "replaced_by", "class", "classes", "why"});
  Entry entry;
  entry.range.kind = map.at("kind").text();
  entry.range.source_class = class_of(scenario, entry.range.kind, map, largest);
  entry.off = entry.range.source_class == "none";
  for (const YamlValue& prefix : map.at("replaced_by").list()) entry.replaced_by.push_back(prefix.text());
  Assumption& range = entry.range.range;
  range.key = map.at("key").text();
  range.why = map.at("why").text();
  range.place = value.node().place;
  range.by_default = true;
  if (const auto law = map.maybe("law")) range.logarithmic = law->one_of({"uniform", "log-uniform"}) == 1;
  const YamlMap classes = map.at("classes").map(kClasses);
  for (const std::string& name : kClasses) {
    const auto ends = classes.at(name).list();
    if (ends.size() != 2 && ends.size() != 3)
      classes.at(name).expected("two numbers, [low, high], or three, [low, middle, high]");
    if (name != entry.range.source_class) continue;
    range.low = ends.front().number(0);
    range.high = ends.back().number(range.low);
    if (ends.size() == 3) range.middle = ends[1].number(range.low, range.high);
  }
  return entry;
}

bool starts_with_any(const std::string& key, const std::vector<std::string>& prefixes) {
  return std::ranges::any_of(prefixes, [&](const std::string& prefix) { return key.starts_with(prefix); });
}

bool is_replaced(const Scenario& scenario, const Entry& entry) {
  return std::ranges::any_of(scenario.assumptions,
                             [&](const auto& one) { return starts_with_any(one.key, entry.replaced_by); }) ||
         std::ranges::any_of(scenario.calibrations, [&](const auto& one) {
           return starts_with_any(one.range.key, entry.replaced_by);
         });
}

/// True if the scenario gives the key a value of its own: in its document, by `set` or in the sweep.
bool is_given(const Scenario& scenario, const std::string& key) {
  const auto gives_key = [&](const Assignment& one) {
    return one.path == key || (key.starts_with(one.path + ".") &&
                               find_path(one.value, key.substr(one.path.size() + 1)) != nullptr);
  };
  return find_path(scenario.document, key) != nullptr || std::ranges::any_of(scenario.settings, gives_key) ||
         std::ranges::any_of(scenario.points, [&](const Point& point) {
           return std::ranges::any_of(point.values, gives_key);
         });
}

/// True if the points may run different kernels. If all run the same, the range of all layer times covers
/// them.
bool sweeps_more_than_workers(const Scenario& scenario) {
  return std::ranges::any_of(scenario.sweep_keys, [](const std::string& key) { return key != "workers"; });
}

bool has_flash_attention(const Experiment& experiment) {
  return experiment.device.kernels && experiment.device.kernels->flash > 0 &&
         std::ranges::any_of(experiment.model.layers, [&](const Layer& layer) {
           return layer.kind == LayerKind::attention &&
                  is_flash(attention_kernels(layer, experiment.device.choice()));
         });
}

/// True if the input of this kind matters to a scenario whose layer times are derived.
bool matters_to_derived_times(const Scenario& scenario, const Experiment& largest, const std::string& kind) {
  const YamlNode* trace = find_path(scenario.document, "trace");
  if (trace == nullptr || trace->text != "derived" || is_given(scenario, "strategy.compute_factor"))
    return false;
  if (kind == kKernels) return true;
  const bool half = largest.device.choice().half();
  if (kind == kSingle) return !half;
  if (kind == kHalf || kind == kTransformer)
    return half && has_layers(largest.model, LayerKind::attention) == (kind == kTransformer);
  if (!sweeps_more_than_workers(scenario)) return false;
  if (kind == kMemoryBound) return largest.device.kernels.has_value();
  return kind == kFp8 ? largest.device.fp8.has_value() : has_flash_attention(largest);
}

/// True if the input of this kind matters to the scenario.
bool matters(const Scenario& scenario, const Experiment& largest, const std::string& kind) {
  if (is_of_kernels(kind)) return matters_to_derived_times(scenario, largest, kind);
  const Spread spread = spread_of(largest);
  if (largest.plan.devices == 1 && spread.servers == 1) return false;
  if (kind == kBetween) return spread.servers > 1;
  if (kind == kInside) return spread.servers == 1;
  if (kind == kSlowdown) return !is_given(scenario, "strategy.compute_slowdown");
  if (kind == kHost)
    return is_given(scenario, "strategy.host_work") || is_given(scenario, "strategy.host_turn") ||
           largest.device.host_operation.value > 0;
  if (kind == kDevices)
    return !is_given(scenario, "noise") && largest.noise.device_spread > 0 && !largest.plan.asynchronous;
  if (kind != kSpread) return true;
  const bool swept = std::ranges::any_of(scenario.sweep_keys, [](const std::string& key) {
    return key == "noise" || key.starts_with("noise.");
  });
  return largest.noise.jitter == Noise::Jitter::lognormal && !swept;
}

}  // namespace

std::vector<DefaultRange> default_ranges(const Scenario& scenario, const Experiment& largest,
                                         Library& library) {
  std::vector<DefaultRange> ranges;
  if (!scenario.uncertainty.on) return ranges;
  const YamlNode name = command_line_name("input-ranges");
  const YamlNode& root = library.tree(YamlValue(name, "uncertainty"), "models/measured");
  std::vector<std::string> kinds{"discrepancy"};
  for (const YamlValue& value : YamlValue(root, "").map({"ranges"}).at("ranges").list()) {
    const Entry entry = read_entry(value, scenario, largest);
    kinds.push_back(entry.range.kind);
    if (!entry.off && !is_replaced(scenario, entry) && matters(scenario, largest, entry.range.kind))
      ranges.push_back(entry.range);
  }
  for (const auto& [kind, node] : scenario.uncertainty.classes) {
    if (std::ranges::find(kinds, kind) != kinds.end()) continue;
    YamlNode text = node;
    text.text = kind;
    YamlValue(text, "uncertainty").one_of(kinds);  // throws, with the nearest kind
  }
  return ranges;
}

Experiment largest_experiment(const Scenario& scenario, Library& library) {
  Experiment largest;
  for (const Point& point : scenario.points) {
    try {
      Experiment one = build_experiment(scenario.document, middle_values(scenario, point), library);
      if (one.plan.workers >= largest.plan.workers) largest = std::move(one);
    } catch (const InputError&) {  // the point fails alone
    }
  }
  return largest;
}

Scenario with_default_ranges(Scenario scenario, const Experiment& largest, Library& library) {
  for (DefaultRange& one : default_ranges(scenario, largest, library))
    scenario.assumptions.push_back(std::move(one.range));
  return scenario;
}

}  // namespace stepcast
