#include "scenarios/experiment/placement.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "strategies/plan/plan.hpp"
#include "tests/platforms/routes.hpp"
#include "tests/platforms/shapes.hpp"

using namespace stepcast;

namespace {

/// Four nodes of three devices.
Platform small() {
  Platform platform;
  platform.nodes = 4;
  platform.devices_per_node = 3;
  return platform;
}

using Devices = std::vector<int>;

/// Mean number of fabric cables between neighbours of a ring over all devices.
double mean_hops(const Platform& platform, PlacementRule rule) {
  const Topology topology(platform);
  const Devices ring = place_workers(platform, platform.devices(), rule, 3);
  double hops = 0;
  for (std::size_t i = 0; i < ring.size(); ++i)
    hops += static_cast<double>(route_between(topology, ring[i], ring[(i + 1) % ring.size()]).size()) - 4;
  return hops / static_cast<double>(ring.size());  // beside device and NIC at both ends
}

}  // namespace

TEST_CASE("packed placement fills node after node", "[scenarios]") {
  CHECK(place_workers(small(), 5, PlacementRule::packed, 1) == Devices{0, 1, 2, 3, 4});
  CHECK(even_ranks_per_node(small(), {0, 1, 2, 3, 4, 5}) == 3);
  CHECK(even_ranks_per_node(small(), {0, 1, 2, 3, 4}) == 1);
  CHECK(even_ranks_per_node(small(), {0, 1}) == 2);
}

TEST_CASE("spread placement puts workers on nodes in turn, and the ranks of a node are consecutive",
          "[scenarios]") {
  CHECK(place_workers(small(), 3, PlacementRule::spread, 1) == Devices{0, 3, 6});
  CHECK(place_workers(small(), 6, PlacementRule::spread, 1) == Devices{0, 1, 3, 4, 6, 9});
  CHECK(even_ranks_per_node(small(), {0, 1, 3, 4, 6, 7, 9, 10}) == 2);
  CHECK(even_ranks_per_node(small(), {0, 1, 3, 4, 6, 9}) == 1);
}

TEST_CASE("every placement uses each device at most once, and all of them at the full size", "[scenarios]") {
  for (const PlacementRule rule : {PlacementRule::packed, PlacementRule::spread, PlacementRule::random}) {
    for (int workers = 1; workers <= 12; ++workers) {
      const Devices devices = place_workers(small(), workers, rule, 5);
      const std::set<int> used(devices.begin(), devices.end());
      CHECK(std::ssize(devices) == workers);
      CHECK(used.size() == devices.size());
      CHECK(*used.begin() >= 0);
      CHECK(*used.rbegin() < 12);
    }
  }
}

TEST_CASE("random placement is decided by the seed and keeps the ranks of a node together", "[scenarios]") {
  const Platform platform = small();
  const Devices first = place_workers(platform, 8, PlacementRule::random, 1);
  CHECK(first == place_workers(platform, 8, PlacementRule::random, 1));
  std::set<Devices> placements;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Devices devices = place_workers(platform, 8, PlacementRule::random, seed);
    placements.insert(devices);
    std::vector<int> nodes;
    for (const int device : devices) {
      if (nodes.empty() || nodes.back() != platform.node_of(device))
        nodes.push_back(platform.node_of(device));
    }
    CHECK(std::set<int>(nodes.begin(), nodes.end()).size() == nodes.size());
  }
  CHECK(placements.size() >= 18);
}

TEST_CASE("on a torus neighbours are one hop apart packed, and a quarter of each ring apart at random",
          "[scenarios]") {
  const Link cable{{4e9}, {1e-7}};
  const Platform platform = platform_of(16 * 16 * 8, TorusShape{{16, 16, 8}, {cable, cable, cable}, 1});
  // Along x; one step of y at the end of each row, one of z at the end of each plane.
  const double turns = 2048 + 128 + 8;
  CHECK(mean_hops(platform, PlacementRule::packed) == Approx(turns / 2048));
  CHECK(mean_hops(platform, PlacementRule::spread) == Approx(turns / 2048));  // one device a node
  CHECK(mean_hops(platform, PlacementRule::random) == Approx(4 + 4 + 2).epsilon(0.02));
}

TEST_CASE("on a dragonfly packed neighbours share a router, random ones cross a global cable",
          "[scenarios]") {
  DragonflyShape shape;
  shape.groups = 8;
  shape.cables_per_group_pair = 4;
  shape.chassis_cable = shape.group_cable = shape.global_cable = {{4e9}, {1e-7}};
  const Platform platform = platform_of(8 * 6 * 16 * 4, shape);
  CHECK(mean_hops(platform, PlacementRule::packed) < 0.35);  // three of four stay at their router
  // A global cable for 7 of 8, and at most two hops in each of the two groups.
  const double random = mean_hops(platform, PlacementRule::random);
  CHECK(random > 7.0 / 8 * (1 + 2));
  CHECK(random < 5);
}
