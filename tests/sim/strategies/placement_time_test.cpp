#include <catch2/catch.hpp>
#include <cmath>

#include "tests/platforms/built_platforms.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::placement_time_test {

// Tests rings of eight workers on fabrics whose cables are as fast as the NICs (1 GB/s), so that two messages
// on a cable get half of it each. A NIC has a latency of 0.5 us at both ends. The time depends on where a
// ring's neighbours are.

namespace {

constexpr double kNics = 1e-6, kCable = 2e-7, kRate = 1e9, kGradient = 24e6;
constexpr int kWorkers = 8, kRounds = 2 * (kWorkers - 1);
const std::vector<int> kPacked{0, 1, 2, 3, 4, 5, 6, 7};

TorusShape torus() {
  const Link cable{{kRate}, {kCable}};
  return {{8, 1, 1}, {cable, cable, cable}, 1};
}

/// A dragonfly with four groups of one router with two nodes, and a cable between every two groups.
DragonflyShape dragonfly() {
  DragonflyShape shape;
  shape.ports_per_router = 2;
  shape.routers_per_chassis = shape.chassis_per_group = 1;
  shape.groups = 4;
  shape.chassis_cable = shape.group_cable = shape.global_cable = {{kRate}, {kCable}};
  return shape;
}

double ring_seconds(const FabricShape& fabric, const std::vector<int>& nodes, Fidelity fidelity) {
  return number_from_child([&] {
    Platform platform = platform_of(kWorkers, fabric);
    platform.node.device.bandwidth = {1e15};
    platform.message_costs = platform.local_message_costs = {{{INFINITY}, {0}, 1}};
    Run run(platform, kWorkers, three_layers({1e9}));
    run.endpoints = nodes;
    run.options.overlap = false;
    run.communication.all_reduce.algorithm = Algorithm::ring;
    run.simulation.fidelity = fidelity;
    return run.result().steps.at(0).seconds - kCompute - kUpdate;
  });
}

double rounds(double latency, double rate) {
  return kRounds * (latency + kGradient / kWorkers / rate);
}

}  // namespace

TEST_CASE("on a torus a ring in order goes one hop, and one of every third node three over shared cables",
          "[sim]") {
  const Fidelity fidelity = GENERATE(Fidelity::message, Fidelity::coupled);
  CHECK(ring_seconds(torus(), kPacked, fidelity) == Approx(rounds(kNics + kCable, kRate)).epsilon(1e-9));
  CHECK(ring_seconds(torus(), {0, 3, 6, 1, 4, 7, 2, 5}, fidelity) ==
        Approx(rounds(kNics + 3 * kCable, kRate / 3)).epsilon(1e-9));
}

TEST_CASE("on a dragonfly a ring that leaves its group with every message has half of a cable each",
          "[sim]") {
  const double apart = ring_seconds(dragonfly(), {0, 2, 4, 6, 1, 3, 5, 7}, Fidelity::message);
  CHECK(apart == Approx(rounds(kNics + kCable, kRate / 2)).epsilon(1e-9));
  const double packed =
      ring_seconds(dragonfly(), kPacked, Fidelity::message);  // half of the messages stay inside
  CHECK(packed > rounds(kNics, kRate));
  CHECK(packed <= rounds(kNics + kCable, kRate) * (1 + 1e-9));
}

TEST_CASE("background traffic on one NIC sets the pace of the ring through it", "[sim]") {
  const Fidelity fidelity = GENERATE(Fidelity::message, Fidelity::coupled);
  const double slowed = number_from_child([fidelity] {
    Run run(switch_platform(kWorkers), kWorkers, three_layers({1e9}));
    const Topology topology(run.platform);
    for (int link = 0; link < topology.link_count(); ++link) {
      if (topology.link_name(link) == "node 0 NIC 0 up") run.simulation.bandwidths.multiply(link, 0.75);
    }
    run.options.overlap = false;
    run.communication.all_reduce.algorithm = Algorithm::ring;
    run.simulation.fidelity = fidelity;
    return run.result().steps.at(0).seconds - kCompute - kUpdate;
  });
  CHECK(slowed == Approx(rounds(1e-6, 0.75 * kRate)).epsilon(1e-9));
}

}  // namespace stepcast::placement_time_test
