#include "strategies/pipeline/pipeline_options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/layer_times/trace.hpp"

namespace stepcast {
namespace {

void read_chunks(const YamlMap& map, PipelineOptions& options) {
  const bool interleaved = options.order == PipelineOrder::interleaved;
  if (const auto chunks = map.maybe("chunks")) {
    options.chunks = static_cast<int>(chunks->integer(2, 1000));
    if (!interleaved) chunks->refuse("only valid with schedule: interleaved");
  } else if (interleaved) {
    map.at("chunks", "chunks of layers that each stage has, an integer >= 2");
  }
  const int micro_batches = options.group.micro_batches;
  if (interleaved && options.stages == 1) map.at("schedule").refuse("interleaved needs stages >= 2, got 1");
  if (interleaved && micro_batches % options.stages != 0) {
    map.at(map.has("micro_batches") ? "micro_batches" : "schedule")
        .refuse(fmt::format("interleaved needs a multiple of the {} stages, got {} micro-batches",
                            options.stages, micro_batches));
  }
}

void read_zero_stage(const YamlMap& map, PipelineOptions& options) {
  const auto zero = map.maybe("zero");
  if (!zero) return;
  options.zero = static_cast<int>(zero->integer(0, 2));
  if (options.zero == 2 && !options.group.overlap)
    zero->refuse(
        "2 is only valid with overlap: true, because gradients are scattered beside every backward pass");
}

}  // namespace

PipelineOptions read_pipeline_options(const YamlMap& map) {
  PipelineOptions options;
  options.group = read_group_options(map);
  const auto count = [&](const char* key) { return static_cast<int>(map.at(key).integer(1, 100'000)); };
  map.at("stages", "an integer >= 1");
  options.stages = count("stages");
  if (map.has("tensor")) options.tensor = count("tensor");
  if (map.has("micro_batches")) options.group.micro_batches = count("micro_batches");
  if (const auto order = map.maybe("schedule"))
    options.order = static_cast<PipelineOrder>(order->one_of({"naive", "gpipe", "1f1b", "interleaved"}));
  read_chunks(map, options);
  read_zero_stage(map, options);
  return options;
}

Stages cut_into_runs(const YamlMap& map, const Setting& setting, const Trace& times, int runs) {
  const auto named = map.maybe("cuts");
  if (!named) {
    std::vector<double> seconds;
    for (const LayerTrace& layer : times.layers) {
      seconds.push_back(median(layer.forward.seconds).value + median(layer.backward_data.seconds).value +
                        median(layer.backward_weights.seconds).value);
    }
    if (seconds.size() < static_cast<std::size_t>(runs))
      map.at("stages").refuse(fmt::format("{} layers cannot form {} stages", seconds.size(), runs));
    return balanced_stages(seconds, runs);
  }
  Stages cuts{0};
  for (const YamlValue& name : named->list()) {
    const auto& layers = setting.model.layers;
    const auto found = std::find_if(layers.begin() + cuts.back(), layers.end(),
                                    [&](const Layer& layer) { return layer.name == name.text(); });
    if (found == layers.end() || found == layers.begin() + cuts.back())
      name.expected("the first layer of a stage, after that of the stage before");
    cuts.push_back(static_cast<int>(found - layers.begin()));
  }
  if (static_cast<int>(cuts.size()) != runs)
    named->expected(fmt::format("the first layers of stages 2 to {}", runs));
  cuts.push_back(static_cast<int>(setting.model.layers.size()));
  return cuts;
}

}  // namespace stepcast
