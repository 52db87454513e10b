#include <catch2/catch.hpp>
#include <cmath>

#include "tests/platforms/built_platforms.hpp"
#include "tests/sim/child.hpp"
#include "tests/sim/small_cluster.hpp"

namespace stepcast::dead_links_test {

// Rings of eight workers, of which one link fails. The ring's messages over that link follow each other
// without a gap, so its rounds set the pace: 2 (n - 1) (latency + chunk / bandwidth).

namespace {

constexpr double kNics = 1e-6, kCable = 2e-7, kRate = 1e9, kGradient = 24e6;
constexpr int kWorkers = 8;

int link_named(const Platform& platform, const std::string& name) {
  const Topology topology(platform);
  for (int link = 0; link < topology.link_count(); ++link) {
    if (topology.link_name(link) == name) return link;
  }
  throw std::logic_error("no link " + name);
}

/// Seconds of a ring all-reduce while the link has this share of its bandwidth; 0: it is dead.
double ring_seconds(const FabricShape& fabric, const std::string& link, double share, Fidelity fidelity,
                    LinkSharing sharing = LinkSharing::max_min) {
  return number_from_child([&] {
    Platform platform = platform_of(kWorkers, fabric);
    platform.node.device.bandwidth = {1e15};
    platform.message_costs = platform.local_message_costs = {{{INFINITY}, {0}, 1}};
    if (share == 0) platform.dead_links = {link_named(platform, link)};
    Run run(platform, kWorkers, three_layers({1e9}));
    run.simulation.bandwidths.multiply(link_named(platform, link), share > 0 ? share : 1);
    run.options.overlap = false;
    run.communication.all_reduce.algorithm = Algorithm::ring;
    run.simulation.fidelity = fidelity;
    run.simulation.link_sharing = sharing;
    return run.result().steps.at(0).seconds - kCompute - kUpdate;
  });
}

double rounds(double latency, double rate) {
  return 2 * (kWorkers - 1) * (latency + kGradient / kWorkers / rate);
}

}  // namespace

TEST_CASE("a ring over a link that keeps a share of its bandwidth takes the time of that link",
          "[sim][faults]") {
  const Fidelity fidelity = GENERATE(Fidelity::message, Fidelity::coupled);
  for (const double share : {0.5, 0.1}) {
    CHECK(ring_seconds(FatTreeShape{}, "node 3 NIC 0 up", share, fidelity) ==
          Approx(rounds(kNics, share * kRate)).epsilon(1e-9));
  }
}

TEST_CASE("a ring goes around a dead cable of a torus, over all other cables of the way back",
          "[sim][faults]") {
  const Link cable{{kRate}, {kCable}};
  const TorusShape torus{{kWorkers, 1, 1}, {cable, cable, cable}, 1};
  const std::string dead = "router (0, 0, 0) -> router (1, 0, 0)";
  // Messages of the other workers go the other way, so only the latency of six more hops is added.
  const LinkSharing sharing = GENERATE(LinkSharing::max_min, LinkSharing::simgrid);
  CHECK(ring_seconds(torus, dead, 0, Fidelity::message, sharing) ==
        Approx(rounds(kNics + 7 * kCable, kRate)).epsilon(1e-9));
}

TEST_CASE("leaves whose dead cable leaves one to a spine share it", "[sim][faults]") {
  // Four leaves of two nodes and two cables up. A ring in order leaves each leaf with one message.
  const FatTreeShape tree{{{.down = 2, .taper = 1, .up = 2, .latency = {kCable}}}};
  const LinkSharing sharing = GENERATE(LinkSharing::max_min, LinkSharing::simgrid);
  CHECK(ring_seconds(tree, "leaf 0 -> spine 0", 0, Fidelity::message, sharing) ==
        Approx(rounds(kNics + 2 * kCable, kRate)).epsilon(1e-9));
}

}  // namespace stepcast::dead_links_test
