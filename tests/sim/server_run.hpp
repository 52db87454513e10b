#pragma once

#include "sim/simulation.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/registry.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast {

constexpr double kHop = 1e-6;         // s, device to device of switch_platform
constexpr double kModel = 0.004;      // s, 4 MB at 1 GB/s
constexpr double kMiniBatch = 0.030;  // s, forward and backward
constexpr double kOwnUpdate = 0.001;

/// A million parameters in one array; 10 ms forward, 20 ms backward, 1 ms update at any batch.
inline Model one_array_model() {
  const YamlNode node = parse_yaml(R"(
name: one-array
source: test
input: [1000]
layers:
  - {name: fc, kind: dense, units: 1000, bias: false}
  - {name: loss, kind: softmax_cross_entropy}
)",
                                   "m.yaml");
  return read_model(YamlValue(node, ""));
}

/// A scenario of one strategy on single-device nodes behind one switch.
struct ServerRun {
  std::string strategy;  ///< as written in a scenario
  int workers = 1;
  int nodes = 0;  ///< 0: one a worker and eight more
  int steps = 6;
  Noise noise;
  Device device = {};  ///< a processor

  Plan plan(const Platform& platform, const Model& model) const {
    Setting setting{model, device, platform, test::first_endpoints(workers)};
    setting.steps = steps;
    setting.times = [](std::int64_t) {
      return LayerTimes{{{0.010, 0.020, kOwnUpdate}, {}}, {}, "captured", {}};
    };
    setting.compression = [](Compression) { return CompressionTimes{{1e-9, 5e-10}, 1000, "derived"}; };
    setting.host_compression = [](Compression) { return CompressionTimes{{3e-9, 2e-9}, 1000, ""}; };
    setting.part_trace = [](const PartModel&) {
      Trace half;
      half.layers.resize(2);
      half.layers[0].forward.seconds = {0.005};
      half.layers[0].backward_weights.seconds = {0.010};
      half.layers[0].update.seconds = {kOwnUpdate / 2};
      return half;
    };
    Trace named;
    named.model = "one-array";
    named.layers.resize(2);
    named.layers[0].update.seconds = {0.002, 0.003, 0.007};
    named.flags = {"disturbed"};
    setting.named_trace = [&](const YamlValue&) -> const Trace& { return named; };
    const YamlNode node = parse_yaml("strategy: " + strategy, "s.yaml");
    const YamlValue options = YamlValue(node, "").any_map().at("strategy", "");
    const std::size_t kind = options.any_map().at("kind", "").one_of(strategy_names());
    return strategies()[kind].plan(options, setting);
  }

  Plan plan() const {
    const Platform platform = switch_platform(nodes > 0 ? nodes : workers + 8);
    return plan(platform, one_array_model());
  }

  SimulationResult result() const {
    const Platform platform = switch_platform(nodes > 0 ? nodes : workers + 8);
    const Model model = one_array_model();
    const Plan planned = plan(platform, model);
    Simulation simulation;
    simulation.platform = &platform;
    simulation.bandwidths = LinkBandwidths(platform);
    simulation.plan = &planned;
    simulation.noise = noise;
    return simulate(simulation);
  }

  double step_seconds() const { return result().steps.at(0).seconds; }
};

inline const std::vector<double>& recorded(const SimulationResult& result, const char* name) {
  return result.records.at(name);
}

}  // namespace stepcast
