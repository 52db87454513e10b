#include "commands/search_space/possible_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "commands/search_space/search_space.hpp"
#include "core/error.hpp"
#include "scenarios/reader/sweep.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

using Recompute = Layout::Recompute;

/// Tokens of a sequence that a device has at least where several share it: assumed.
constexpr std::int64_t kLeastTokens = 8192;
constexpr std::array<std::int64_t, 4> kMicroBatches{1, 2, 4, 8};
constexpr std::array kShards{"none", "optimizer", "gradients", "parameters"};  // by ZeRO stage

/// ZeRO stages of a division. A pipeline would gather or scatter once more for every micro-batch with stages
/// 2 and 3.
std::vector<int> zero_stages(int stages, int replicas) {
  if (replicas == 1) return {0};
  return stages == 1 ? std::vector{0, 1, 2, 3} : std::vector{0, 1};
}

void add_layouts(Layout layout, std::int64_t samples, bool transformer, std::vector<Layout>& layouts) {
  if (samples % layout.replicas != 0) return;
  const std::int64_t whole = samples / layout.replicas;
  std::vector<std::int64_t> sizes(kMicroBatches.begin(), kMicroBatches.end());
  if (whole > sizes.back()) sizes.push_back(whole);
  for (const std::int64_t micro_batch : sizes) {
    if (whole % micro_batch != 0) continue;
    layout.micro_batch = micro_batch;
    layout.micro_batches = whole / micro_batch;
    for (const int zero : zero_stages(layout.stages, layout.replicas)) {
      layout.zero = zero;
      for (const Recompute recompute : {Recompute::none, Recompute::operators, Recompute::full}) {
        layout.recompute = recompute;
        if (transformer || recompute != Recompute::operators) layouts.push_back(layout);
      }
    }
  }
}

/// Powers of two of `devices` that may share the experts of a layer; 1 without experts.
std::vector<int> expert_ways(const Model& model, int devices) {
  const auto found = std::ranges::find(model.layers, LayerKind::experts, &Layer::kind);
  std::vector<int> ways{1};
  if (found == model.layers.end()) return ways;
  for (int expert = 2; found->experts % expert == 0 && devices % expert == 0; expert *= 2)
    ways.push_back(expert);
  return ways;
}

/// Powers of two of devices that may share a sequence.
std::vector<int> contexts_of(const Model& model) {
  std::vector<int> contexts{1};
  if (!has_layers(model, LayerKind::attention)) return contexts;
  while (model.input.front() >= 2 * kLeastTokens * contexts.back()) contexts.push_back(2 * contexts.back());
  return contexts;
}

}  // namespace

std::vector<Layout> layouts_of(const Experiment& experiment, std::int64_t samples) {
  const int workers = experiment.plan.workers;
  const int blocks = experiment.model.blocks.size();
  const bool transformer = has_layers(experiment.model, LayerKind::attention);
  std::vector<Layout> layouts;
  for (int tensor = 1; tensor <= experiment.platform.devices_per_node; tensor *= 2) {
    for (int stages = 1; stages <= std::max(blocks, 1); ++stages) {
      const bool equal = blocks % stages == 0, power = std::has_single_bit(static_cast<unsigned>(stages));
      if (!equal && !power) continue;
      for (const int context : contexts_of(experiment.model)) {
        if (workers % (stages * context * tensor) != 0) continue;
        const int replicas = workers / (stages * context * tensor);
        for (const int expert : expert_ways(experiment.model, replicas * context))
          add_layouts({.stages = stages,
                       .context = context,
                       .tensor = tensor,
                       .replicas = replicas,
                       .expert = expert,
                       .equal_stages = equal,
                       .sequence_parallel = transformer && tensor > 1},
                      samples, transformer, layouts);
      }
    }
  }
  return layouts;
}

std::vector<Layout> interleaved(const Layout& layout, const Model& model) {
  const std::int64_t blocks = std::ssize(model.blocks) / layout.stages;
  if (layout.stages == 1 || !layout.equal_stages || layout.micro_batches % layout.stages != 0) return {};
  std::vector<Layout> found;
  for (const std::int64_t chunks : std::set{std::int64_t{2}, blocks}) {
    if (chunks < 2 || blocks % chunks != 0) continue;
    for (const Recompute recompute : {Recompute::none, Recompute::operators, Recompute::full}) {
      if (recompute < layout.recompute) continue;
      found.push_back(layout);
      found.back().chunks = static_cast<int>(chunks);
      found.back().recompute = recompute;
    }
  }
  return found;
}

std::string name_without_recompute(const Layout& layout) {
  std::string text = fmt::format("pipeline {}, ", layout.stages);
  if (layout.chunks > 1) text += fmt::format("chunks {}, ", layout.chunks);
  if (layout.context > 1) text += fmt::format("context {}, ", layout.context);
  text += fmt::format("tensor {}, data {}", layout.tensor, layout.replicas);
  if (layout.expert > 1) text += fmt::format(", expert {}", layout.expert);
  if (layout.zero > 0) text += fmt::format(", ZeRO {}", layout.zero);
  return text + fmt::format(", micro-batch {}", layout.micro_batch);
}

std::string to_string(Layout::Recompute recompute) {
  constexpr std::array kWords{"none", "operators", "full"};
  return kWords.at(ordinal(recompute));
}

std::string to_string(const Layout& layout) {
  const std::string text = name_without_recompute(layout);
  return layout.recompute == Recompute::none
             ? text
             : fmt::format("{}, recompute {}", text, to_string(layout.recompute));
}

std::vector<Assignment> values_of(const Layout& layout, const YamlNode& strategy) {
  constexpr std::array kDividing{"mesh",         "shard",  "shard_within", "stages",
                                 "tensor",       "zero",   "stage",        "micro_batches",
                                 "accumulation", "ways",   "split_points", "split",
                                 "schedule",     "chunks", "recompute",    "sequence_parallel"};
  std::vector<Assignment> values;
  const auto set = [&values](const char* key, auto value) {
    values.push_back(assignment(std::string("strategy.") + key, value));
  };
  for (const auto& [key, value] : strategy.entries) {
    const bool divides = std::ranges::find(kDividing, key.text) != kDividing.end();
    const std::string path = "strategy." + key.text;
    if (divides || !has_option(kPlainReplicas, path)) values.push_back(removal(path));
  }
  set("kind", kPlainReplicas);
  std::vector<Assignment> axes{assignment("pipeline", layout.stages), assignment("tensor", layout.tensor)};
  if (layout.context > 1) axes.push_back(assignment("context", layout.context));
  if (layout.expert > 1) axes.push_back(assignment("expert", layout.expert));
  set("mesh", std::move(axes));
  set("shard", kShards.at(layout.zero));
  set("accumulation", layout.micro_batches);
  set("recompute", to_string(layout.recompute));
  if (layout.sequence_parallel) set("sequence_parallel", true);
  set("split", layout.equal_stages ? "blocks" : "time");
  if (layout.chunks > 1) {
    set("schedule", "interleaved");
    set("chunks", layout.chunks);
  }
  values.push_back(assignment("global_batch", layout.replicas * layout.micro_batch * layout.micro_batches));
  return values;
}

std::vector<Assignment> layout_values(const YamlNode& document, std::vector<Assignment> values,
                                      const Layout& layout, const YamlNode& strategy) {
  std::erase_if(values, [](const Assignment& one) { return one.path == "batch_per_worker"; });
  if (find_path(document, "batch_per_worker") != nullptr) values.push_back(removal("batch_per_worker"));
  const auto own = values_of(layout, strategy);
  values.insert(values.end(), own.begin(), own.end());
  return values;
}

namespace {

std::string text_of(const Layout& layout) {
  std::vector<std::string> axes, keys{fmt::format("kind: {}", kPlainReplicas)};
  for (const auto& [axis, size] : {std::pair("pipeline", layout.stages),
                                   {"context", layout.context},
                                   {"tensor", layout.tensor},
                                   {"expert", layout.expert}})
    if (size > 1) axes.push_back(fmt::format("{}: {}", axis, size));
  if (!axes.empty()) keys.push_back(fmt::format("mesh: {{{}}}", fmt::join(axes, ", ")));
  if (layout.sequence_parallel) keys.emplace_back("sequence_parallel: true");
  if (layout.zero > 0) keys.push_back(fmt::format("shard: {}", kShards.at(layout.zero)));
  if (layout.recompute != Recompute::none) keys.push_back("recompute: " + to_string(layout.recompute));
  if (layout.micro_batches > 1) keys.push_back(fmt::format("accumulation: {}", layout.micro_batches));
  return fmt::format("{{{}}}", fmt::join(keys, ", "));
}

}  // namespace

std::string fitting_layout(const YamlNode& document, const std::vector<Assignment>& values,
                           const Experiment& experiment, Library& library) {
  if (!has_option(experiment.strategy, "strategy.recompute")) return "";
  std::vector<Layout> layouts = layouts_of(experiment, std::llround(experiment.plan.samples_a_step));
  std::ranges::stable_sort(layouts, {}, [](const Layout& one) {
    return std::tuple(one.stages, one.context * one.tensor, one.recompute, one.zero, one.expert,
                      one.micro_batches);
  });
  const YamlNode strategy = *find_path(document_with(document, values, library), "strategy");
  const auto fits = [&](const Layout& one) {
    try {
      return build_experiment(document, layout_values(document, values, one, strategy), library).plan.fits;
    } catch (const InputError&) {
      return false;  // this network or platform refuses it
    }
  };
  const auto found = std::ranges::find_if(layouts, fits);
  return found == layouts.end() ? "" : text_of(*found);
}

}  // namespace stepcast
