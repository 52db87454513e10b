#include <catch2/catch.hpp>

#include "sim/collectives/planned_collectives.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::fidelity_test {

// Compares the cheap fidelities with every message on networks with contention. Each simulation runs in its
// own process.

namespace {

Platform tapered_platform() {
  const YamlNode root = parse_yaml(R"(
name: tapered
source: test
device: none
nodes: 16
max_nodes: 16
node:
  kind: switch
  devices: 4
  device_link: {bandwidth: 16 GB/s, latency: 1 us}
  memory: {bandwidth: 100 GB/s, latency: 0 s}
  peer_link: {bandwidth: 100 GB/s, latency: 1 us}
network:
  kind: fat_tree
  nics: 2
  bandwidth: 12 GB/s
  latency: 1 us
  levels: [{down: 16, up: 8, taper: 2, latency: 1 us}]
messages:
  between_nodes: [{up_to: 64 KiB, overhead: 3 us, bandwidth_factor: 0.8}, {overhead: 6 us, bandwidth_factor: 1}]
  inside_node: [{overhead: 1 us, bandwidth_factor: 1}]
)",
                                   "tapered.yaml");
  return read_platform(YamlValue(root, ""), {});
}

struct Case {
  Algorithm algorithm;
  NetworkPart network;
  int workers, streams;
  double scale;  ///< of the gradients
};

double seconds(const Case& c, Fidelity fidelity) {
  return number_from_child([&] {
    Run run(tapered_platform(), c.workers, three_layers({1}));
    for (Bucket& bucket : run.workload.buckets) bucket.gradient.value *= c.scale;
    for (LayerSeconds& layer : run.workload.median) layer = {0.001, 0.002, 0};
    run.communication.all_reduce.algorithm = c.algorithm;
    run.communication.all_reduce.network = c.network;
    run.communication.streams = run.communication.in_flight = c.streams;
    run.simulation.fidelity = fidelity;
    if (fidelity == Fidelity::message) run.simulation.link_sharing = LinkSharing::simgrid;  // the oracle
    return run.result().steps.at(0).seconds;
  });
}

}  // namespace

TEST_CASE("the chosen fidelity is within 1 % of every message on a tapered fat tree", "[sim]") {
  for (const Case& c : std::vector<Case>{
           {Algorithm::ring, {}, 64, 1, 10},
           {Algorithm::ring, {}, 32, 3, 10},
           {Algorithm::halving_doubling, {}, 64, 1, 1},
           {Algorithm::halving_doubling, {}, 24, 1, 1},
           {Algorithm::recursive_doubling, {}, 32, 2, 1},
           {Algorithm::double_tree, {}, 64, 1, 1},
           {Algorithm::binomial_tree, {}, 48, 1, 1},
           {Algorithm::hierarchical, NetworkPart::ring, 64, 1, 10},
           {Algorithm::hierarchical, NetworkPart::halving_doubling, 64, 1, 10},
           {Algorithm::hierarchical, NetworkPart::halving_doubling, 64, 3, 0.1},
           {Algorithm::ring, {}, 64, 3, 0.01},
       }) {
    CAPTURE(ordinal(c.algorithm), ordinal(c.network), c.workers, c.streams, c.scale);
    const double message = seconds(c, Fidelity::message);
    CHECK(seconds(c, Fidelity::automatic) == Approx(message).epsilon(0.01));
  }
}

TEST_CASE("collectives of two communicators are simulated message by message", "[sim]") {
  Run run(switch_platform(16), 16, three_layers({1e9}));
  run.communication.all_reduce.algorithm = Algorithm::ring;
  run.plan = synchronous_plan(run.platform, run.endpoints, run.workload, run.options, run.communication);
  Communicator half = run.plan.communicators.at(0);
  half.size = 8;
  half.ranks.resize(8);
  Collective second = run.plan.collectives.at(0);
  second.communicator = CommunicatorId{1};
  run.plan.communicators.push_back(half);
  run.plan.collectives.push_back(second);
  run.simulation.plan = &run.plan;
  const Topology topology(run.platform);
  const CollectiveSchedules schedules(run.simulation, topology);
  CHECK(to_text(PlannedCollectives(schedules, ComputeBudget::small).fidelity().used()) == "message");
}

}  // namespace stepcast::fidelity_test
