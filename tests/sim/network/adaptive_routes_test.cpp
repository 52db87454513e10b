#include "sim/network/adaptive_routes.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::adaptive_routes_test {

// Four groups of 8 nodes; one global cable, as fast as a NIC, between each two groups.

namespace {

Platform dragonfly(const std::string& routing) {
  const YamlNode root = parse_yaml(fmt::format(R"(
name: dragonfly
source: test
device: none
nodes: 32
max_nodes: 32
node:
  kind: single
  device_link: {{bandwidth: 1000 TB/s, latency: 0 s}}
  memory: {{bandwidth: 1000 TB/s, latency: 0 s}}
network:
  kind: dragonfly
  bandwidth: 1 GB/s
  latency: 1 us
  nodes_per_router: 2
  routers_per_chassis: 4
  chassis_per_group: 1
  groups: 4
  cables_per_group_pair: 1
  chassis_cable: {{bandwidth: 8 GB/s, latency: 0.1 us}}
  group_cable: {{bandwidth: 8 GB/s, latency: 0.1 us}}
  global_cable: {{bandwidth: 1 GB/s, latency: 0.3 us}}
  routing: {}
messages:
  between_nodes: [{{overhead: 0 s, bandwidth_factor: 1}}]
  inside_node: [{{overhead: 0 s, bandwidth_factor: 1}}]
)",
                                               routing),
                                   "dragonfly.yaml");
  return read_platform(YamlValue(root, ""), {});
}

/// Dates at which messages of 1 GB arrive, from nodes 0, 1, ... of the first group to nodes 8, 9, ... of the
/// second, if they start one after the other at the same date [s].
std::vector<double> arrivals(const std::string& routing, int messages) {
  return numbers_from_child(messages, [&] {
    const Platform platform = dragonfly(routing);
    const LinkBandwidths bandwidths(platform);
    Engine engine(std::vector<BytesPerSecond>{});
    MaxMinSharing flows(engine, bandwidths.size(), [&](int link) { return bandwidths[link]; });
    AdaptiveRoutes routes(bandwidths, flows);
    std::vector<double> dates(messages);
    for (int i = 0; i < messages; ++i) {
      std::vector<int> usual;
      bandwidths.topology().route(i, 8 + i, usual);
      flows.start_flow(routes.best(i, 8 + i, usual), {1e9},
                       [&engine, &date = dates[i]] { date = engine.now(); });
    }
    engine.run();
    return dates;
  });
}

/// Duration of an all-reduce of 64 MB among the nodes of two groups in turn, whose neighbours in the ring are
/// in different groups.
double ring_seconds(const std::string& routing) {
  return number_from_child([&] {
    Workload workload = three_layers({1});
    for (Bucket& bucket : workload.buckets) bucket.gradient = {64e6 / 3};
    Run run(dragonfly(routing), 16, std::move(workload));
    for (int i = 0; i < 16; ++i) run.endpoints[i] = i % 2 * 8 + i / 2;
    run.options.overlap = false;
    run.communication.all_reduce.algorithm = Algorithm::ring;
    run.simulation.fidelity = Fidelity::message;
    run.simulation.link_sharing = LinkSharing::max_min;
    return run.result().steps.at(0).exposed;
  });
}

}  // namespace

TEST_CASE("the first message takes the minimal route, the next ones the cables with the least load",
          "[sim]") {
  CHECK(arrivals("minimal", 3).back() == Approx(3));  // all over the one cable between the groups
  const std::vector<double> dates = arrivals("adaptive", 3);
  for (const double date : dates) CHECK(date == Approx(1));  // directly, and through both other groups
  CHECK(arrivals("adaptive", 1).back() == Approx(1));
}

TEST_CASE("a collective between two groups is faster with adaptive routes than with minimal ones", "[sim]") {
  const double adaptive = ring_seconds("adaptive"), minimal = ring_seconds("minimal");
  CHECK(adaptive < 0.6 * minimal);
}

}  // namespace stepcast::adaptive_routes_test
