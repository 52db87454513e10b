#include "commands/search/layouts.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "commands/search_space.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {
namespace {

constexpr std::array<std::int64_t, 4> kMicroBatches{1, 2, 4, 8};

/// ZeRO stages of a division. A pipeline's backward passes sum gradients more than once with stage 2.
std::vector<int> zero_stages(int stages, int tensor, int replicas) {
  if (replicas == 1) return {0};
  if (stages == 1 && tensor == 1) return {0, 1, 2, 3};
  return stages == 1 ? std::vector{0, 1, 2} : std::vector{0, 1};
}

void add_layouts(Layout layout, std::int64_t samples, std::vector<Layout>& layouts) {
  for (const std::int64_t micro_batch : kMicroBatches) {
    if (samples % (layout.replicas * micro_batch) != 0) continue;
    layout.micro_batch = micro_batch;
    layout.micro_batches = samples / (layout.replicas * micro_batch);
    for (const int zero : zero_stages(layout.stages, layout.tensor, layout.replicas)) {
      layout.zero = zero;
      for (const bool recompute : {false, true}) {
        layout.recompute = recompute;
        layouts.push_back(layout);
      }
    }
  }
}

}  // namespace

std::vector<Layout> layouts_of(const Experiment& experiment) {
  const int workers = experiment.plan.workers;
  const int blocks = static_cast<int>(experiment.model.blocks.size());
  const auto samples = static_cast<std::int64_t>(std::llround(experiment.plan.samples_a_step));
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
  const bool replicas_only = layout.stages == 1 && layout.tensor == 1;
  const std::string kind = !replicas_only ? "pipeline" : layout.zero > 0 ? "zero" : "synchronous";
  constexpr std::array kDividing{"stages",        "tensor",       "zero",   "stage",
                                 "micro_batches", "accumulation", "ways",   "split_points",
                                 "split",         "schedule",     "chunks", "recompute"};
  std::vector<Assignment> values;
  const auto set = [&](const std::string& text) { values.push_back(parse_assignment("strategy." + text)); };
  for (const auto& [key, value] : strategy.entries) {
    const bool divides = std::ranges::find(kDividing, key.text) != kDividing.end();
    if (divides || !has_option(kind, "strategy." + key.text)) set(key.text + "=null");
  }
  set("kind=" + kind);
  set(fmt::format("recompute={}", layout.recompute));
  set(fmt::format("{}={}", replicas_only ? "accumulation" : "micro_batches", layout.micro_batches));
  if (kind == "zero") set(fmt::format("stage={}", layout.zero));
  if (replicas_only) return values;
  set(fmt::format("stages={}", layout.stages));
  set(fmt::format("tensor={}", layout.tensor));
  set(fmt::format("zero={}", layout.zero));
  set("split=blocks");
  return values;
}

}  // namespace stepcast
