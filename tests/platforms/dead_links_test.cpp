#include <catch2/catch.hpp>
#include <set>

#include "built_platforms.hpp"

namespace stepcast::dead_links_test {

namespace {

bool uses(const std::vector<int>& route, const std::vector<int>& dead) {
  return std::ranges::any_of(route, [&](int id) { return std::ranges::binary_search(dead, id); });
}

/// Kills the fabric's links one by one and checks the routes between these endpoints: whole, without the dead
/// link, and unchanged where they did not use it. Returns the number of routes that changed.
int checked_detours(Platform platform, const std::vector<int>& endpoints) {
  const Topology whole(platform);
  int changed = 0;
  std::set<int> used;
  for (const int from : endpoints) {
    for (const int to : endpoints) {
      for (const int id : route_between(whole, from, to)) {
        if (whole.link_kind(id) != "NIC") used.insert(id);
      }
    }
  }
  for (const int dead : used) {
    platform.dead_links = {dead};
    const Topology topology(platform);
    for (const int from : endpoints) {
      for (const int to : endpoints) {
        const std::vector<int> usual = route_between(whole, from, to);
        if (!topology.connected(from, to)) {
          CHECK_THROWS_WITH(route_between(topology, from, to),
                            "dead links leave no route between two endpoints");
          continue;
        }
        const std::vector<int> route = route_between(topology, from, to);
        REQUIRE(fault_of_route(topology, from, to).empty());
        REQUIRE_FALSE(uses(route, platform.dead_links));
        REQUIRE((route == usual) == !uses(usual, platform.dead_links));
        changed += route == usual ? 0 : 1;
      }
    }
  }
  return changed;
}

}  // namespace

TEST_CASE("routes lead around each dead cable of a fabric that has a second way", "[platforms][faults]") {
  const Link cable{{1e9}, {1e-7}};
  CHECK(checked_detours(platform_of(12, TorusShape{{3, 2, 2}, {cable, cable, cable}, 1}), {0, 1, 5, 7, 11}) >
        10);
  const FatTreeShape tree{{{.down = 2, .taper = 1, .up = 2, .latency = {1e-7}},
                           {.down = 2, .taper = 2, .up = 2, .latency = {1e-7}}}};
  CHECK(checked_detours(platform_of(16, tree), {0, 1, 2, 5, 9, 15}) > 10);
  DragonflyShape dragonfly;
  dragonfly.ports_per_router = 2;
  dragonfly.routers_per_chassis = dragonfly.chassis_per_group = 2;
  dragonfly.groups = 3;
  dragonfly.chassis_cable = dragonfly.group_cable = dragonfly.global_cable = cable;
  CHECK(checked_detours(platform_of(24, dragonfly), {0, 3, 7, 8, 15, 23}) > 10);
}

TEST_CASE("inside a node a dead NVLink is replaced by PCIe, and a dead device link of the only way cuts off",
          "[platforms][faults]") {
  for (const char* name : {"dgx1v", "minsky", "k40-fdr", "dgx-a100"}) {
    CAPTURE(name);
    const Platform platform = platform_file(name);
    std::vector<int> endpoints;
    for (int device = 0; device < platform.devices_per_node; ++device) endpoints.push_back(device);
    endpoints.push_back(platform.host_endpoint(0));
    if (platform.nodes > 1) endpoints.push_back(2 * platform.devices_per_node - 1);
    checked_detours(platform, endpoints);
  }
  Platform platform = platform_file("dgx1v");
  const Topology whole(platform);
  LinkBandwidths bandwidths(platform);
  bandwidths.multiply(0, 0.5);
  platform.dead_links = route_between(whole, 0, 1);
  REQUIRE(platform.dead_links.size() == 1);  // an NVLink
  const std::vector<int> around = route_between(Topology(platform), 0, 1);
  CHECK(around.size() >= 2);
  CHECK(whole.link_kind(around.front()) == "device - PCIe switch");
  bandwidths.use_routes_of(platform);
  CHECK(route_between(bandwidths.topology(), 0, 1) == around);
  CHECK(bandwidths[0].value == 0.5 * whole.link(0).bandwidth.value);
}

TEST_CASE("a node without a live NIC is cut off, and one with a second NIC uses that",
          "[platforms][faults]") {
  const auto ups = [](const Platform& platform, const std::string& name) {
    const Topology topology(platform);
    std::vector<int> links;
    for (int id = 0; id < topology.links_per_node(); ++id) {
      if (topology.link_name(id).starts_with("node 0 " + name)) links.push_back(id);
    }
    return links;
  };
  Platform platform = platform_of(3, FatTreeShape{});
  platform.dead_links = ups(platform, "NIC");
  REQUIRE(platform.dead_links.size() == 2);
  const Topology cut(platform);
  CHECK_FALSE(cut.connected(0, 1));
  CHECK_FALSE(cut.connected(2, 0));
  CHECK(cut.connected(1, 2));
  platform.devices_per_node = platform.network.nics = 2;
  platform.dead_links = ups(platform, "NIC 0");
  const Topology second(platform);
  const std::vector<int> route = route_between(second, 0, 2);
  CHECK(second.link_name(route.at(1)) == "node 0 NIC 1 up");
  CHECK(fault_of_route(second, 0, 2).empty());
}

}  // namespace stepcast::dead_links_test
