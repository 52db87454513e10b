#include "commands/search/layouts.hpp"

#include <fmt/format.h>

#include <array>

#include "commands/search_space.hpp"
#include "scenarios/reader/sweep.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

constexpr std::array<std::int64_t, 4> kMicroBatches{1, 2, 4, 8};

/// ZeRO stages of a division. A pipeline would gather or scatter once more for every micro-batch with stages
/// 2 and 3.
std::vector<int> zero_stages(int stages, int replicas) {
  if (replicas == 1) return {0};
  return stages == 1 ? std::vector{0, 1, 2, 3} : std::vector{0, 1};
}

void add_layouts(Layout layout, std::int64_t samples, std::vector<Layout>& layouts) {
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
      for (const bool recompute : {false, true}) {
        layout.recompute = recompute;
        layouts.push_back(layout);
      }
    }
  }
}

}  // namespace

std::vector<Layout> layouts_of(const Experiment& experiment, std::int64_t samples) {
  const int workers = experiment.plan.workers;
  const int blocks = experiment.model.blocks.size();
  std::vector<Layout> layouts;
  for (int tensor = 1; tensor <= experiment.platform.devices_per_node; tensor *= 2) {
    for (int stages = 1; stages <= std::max(blocks, 1); ++stages) {
      if (blocks % stages != 0 || workers % (stages * tensor) != 0) continue;
      add_layouts({.stages = stages, .tensor = tensor, .replicas = workers / (stages * tensor)}, samples,
                  layouts);
    }
  }
  return layouts;
}

std::string to_string(const Layout& layout) {
  std::string text =
      fmt::format("pipeline {}, tensor {}, data {}", layout.stages, layout.tensor, layout.replicas);
  if (layout.zero > 0) text += fmt::format(", ZeRO {}", layout.zero);
  text += fmt::format(", micro-batch {}", layout.micro_batch);
  return layout.recompute ? text + ", recompute" : text;
}

std::vector<Assignment> values_of(const Layout& layout, const YamlNode& strategy) {
  constexpr std::array kDividing{"mesh",         "shard", "shard_within",  "stages",       "tensor",
                                 "zero",         "stage", "micro_batches", "accumulation", "ways",
                                 "split_points", "split", "schedule",      "chunks",       "recompute"};
  constexpr std::array kShards{"none", "optimizer", "gradients", "parameters"};
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
  set("mesh", std::vector{assignment("pipeline", layout.stages), assignment("tensor", layout.tensor)});
  set("shard", kShards.at(layout.zero));
  set("accumulation", layout.micro_batches);
  set("recompute", layout.recompute);
  set("split", "blocks");
  return values;
}

}  // namespace stepcast
