#pragma once

#include <fmt/format.h>

#include "core/yaml.hpp"
#include "sim/simulation.hpp"
#include "strategies/data_parallel/synchronous.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/plan/plan.hpp"
#include "tests/first_endpoints.hpp"

namespace stepcast {

/// Equal single-device nodes on one switch: 1 GB/s, and 1 us from device to device.
inline Platform switch_platform(int nodes) {
  const std::string text = fmt::format(R"(
name: test
source: test
device: none
nodes: {0}
max_nodes: {0}
node:
  kind: single
  device_link: {{bandwidth: 1000 TB/s, latency: 0 s}}
  memory: {{bandwidth: 1000 TB/s, latency: 0 s}}
network: {{kind: switch, bandwidth: 1 GB/s, latency: 1 us}}
messages:
  between_nodes: [{{overhead: 0 s, bandwidth_factor: 1}}]
  inside_node: [{{overhead: 0 s, bandwidth_factor: 1}}]
)",
                                       nodes);
  const YamlNode root = parse_yaml(text, "test.yaml");
  return read_platform(YamlValue(root, ""), {});
}

/// A network of three layers, 10, 20 and 30 ms forward, twice that backward, and 1 ms update; 4, 8 and 12 MB
/// gradients.
inline Workload three_layers(Bytes bucket) {
  Workload workload;
  std::vector<LayerGradients> gradients;
  for (int i = 1; i <= 3; ++i) {
    workload.layer_names.push_back(fmt::format("layer{}", i));
    workload.median.push_back({0.010 * i, 0.020 * i, 0.001});
    workload.statistics.push_back({});
    gradients.push_back({1'000'000 * i});
  }
  workload.buckets = gradient_buckets(gradients, {4}, bucket.value > 0 ? BucketSize{bucket} : kEachArray);
  return workload;
}

/// A simulation of `synchronous` that owns what it refers to. Tests change its members and then call
/// `result`.
struct Run {
  Platform platform;
  Workload workload;
  Synchronous options;
  CommunicationOptions communication;
  double compute_slowdown = 1, load_slowdown = 1;
  bool load_data = false;
  std::vector<int> endpoints;
  Plan plan;
  Simulation simulation;

  Run(Platform cluster, int workers, Workload work)
      : platform(std::move(cluster)), workload(std::move(work)), endpoints(test::first_endpoints(workers)) {
    simulation.platform = &platform;
    simulation.bandwidths = LinkBandwidths(platform);
  }
  Run(const Run&) = delete;

  SimulationResult result() {
    plan = synchronous_plan(platform, endpoints, workload, options, communication);
    plan.compute_slowdown = compute_slowdown;
    plan.load_slowdown = load_slowdown;
    plan.load_data = load_data;
    simulation.plan = &plan;
    return simulate(simulation);
  }
};

constexpr double kCompute = 0.060 + 0.120;  // forward and backward of three_layers
constexpr double kUpdate = 0.003;

}  // namespace stepcast
