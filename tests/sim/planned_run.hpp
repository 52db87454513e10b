#pragma once

#include "models/partition/partition_times.hpp"
#include "sim/simulation.hpp"
#include "strategies/registry.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast {

/// A run of any strategy on equal single-device nodes (1 GB/s, 1 us), planned from text. Every layer of every
/// part takes 10 ms forward, 10 ms each for both gradients, and 1 ms for the update.
struct PlannedRun {
  Platform platform;
  YamlNode model_text, strategy_text, batch_text;
  Model model;
  Device device;
  Trace slow;  ///< any named trace: of batch 1, with the layers of the model, each pass of 20 ms
  Plan plan;
  Simulation simulation;

  PlannedRun(int workers, const std::string& model_yaml, const std::string& strategy, int batch = 1,
             int steps = 1)
      : platform(switch_platform(workers)),
        model_text(parse_yaml(model_yaml, "model.yaml")),
        strategy_text(parse_yaml(strategy, "strategy.yaml")),
        batch_text(parse_yaml(std::to_string(batch), "batch.yaml")),
        model(read_model(YamlValue(model_text, ""))) {
    device.name = "test";
    device.peak = {1e12};
    device.memory_bandwidth = {1e12};
    device.memory = device.usable_memory = {1e12};
    Setting setting{model, device, platform, test::first_endpoints(workers)};
    setting.steps = steps;
    setting.batch_per_worker = YamlValue(batch_text, "batch_per_worker");
    setting.part_trace = [](const PartModel& part) { return even_trace(*part.model); };
    slow = even_trace(model);
    for (LayerTrace& layer : slow.layers)
      layer.forward.seconds = layer.backward_data.seconds = layer.backward_weights.seconds = {0.020};
    setting.named_trace = [this](const YamlValue&) -> const Trace& { return slow; };
    setting.times = [this](std::int64_t) {
      const Trace trace = even_trace(model);
      return layer_times(model, {&trace}, trace.batch);
    };
    const YamlValue options(strategy_text, "strategy");
    plan = strategies().at(options.any_map().at("kind").one_of(strategy_names())).plan(options, setting);
    simulation.platform = &platform;
    simulation.plan = &plan;
    simulation.bandwidths = LinkBandwidths(platform);
  }
  PlannedRun(const PlannedRun&) = delete;

  static Trace even_trace(const Model& model) {
    Trace trace;
    trace.model = model.name;
    for (const Layer& layer : model.layers) {
      trace.layers.push_back({layer.name, {{0.010}, {}}, {{0.010}, {}}, {{0.010}, {}}, {{0.001}, {}}});
    }
    return trace;
  }

  SimulationResult result() { return simulate(simulation); }
  double last_step() { return result().steps.back().seconds; }
};

/// A model on which a strategy's example can be planned: with transformer blocks, or with channels and
/// positions.
inline std::string example_model(const Strategy& strategy) {
  if (strategy.example_model == "small-transformer") {
    return "{name: blocks, source: s, transformer_stack: {layers: 2, width: 64, heads: 4, sequence: 32, "
           "vocabulary: 100}}";
  }
  return "{name: maps, source: s, input: [4, 64, 64], layers: [{name: a, kind: convolution, filters: 8, "
         "kernel: 3, pad: 1}, {name: l, kind: mean_squared_error}]}";
}

}  // namespace stepcast
