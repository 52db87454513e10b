#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "built_platforms.hpp"

using namespace stepcast;

namespace {

/// Leaves of 8 with 4 cables up (2:1), blocks of 4 leaves with 4 cables up (each leaf group 1:1), and a top.
FatTreeShape two_tapered_levels() {
  return {{{8, 2, 4, {1e-7}}, {4, 1, 4, {1e-7}}}, false};
}

/// Number of routes over each link below the top if every device sends to every other.
std::map<int, int> all_to_all_use(const Topology& topology, const Platform& platform) {
  std::map<int, int> use;
  for (int from = 0; from < platform.devices(); ++from) {
    for (int to = 0; to < platform.devices(); ++to) {
      for (const int id : route_between(topology, from, to)) {
        if (topology.link_name(id).find("node") == std::string::npos) ++use[id];
      }
    }
  }
  return use;
}

}  // namespace

TEST_CASE("a switch connects all nodes in two hops and has no links of its own", "[platforms]") {
  const Platform platform = platform_of(5, FatTreeShape{});
  const Topology topology(platform);
  CHECK(fault_of_routes(platform).empty());
  CHECK(topology.link_count() == 5 * 6);
  CHECK(route_between(topology, 0, 4).size() == 4);
  CHECK(route_between(topology, 2, 2).empty());
  CHECK(topology.route_latency(0, 4).value == Approx(1e-6));
}

TEST_CASE("fat-tree routes climb to the lowest common switch and no higher", "[platforms]") {
  const Platform platform = platform_of(64, two_tapered_levels());
  const Topology topology(platform);
  CHECK(fault_of_routes(platform).empty());
  CHECK(route_between(topology, 0, 7).size() == 4);
  CHECK(route_between(topology, 0, 8).size() == 4 + 2);
  CHECK(route_between(topology, 31, 32).size() == 4 + 4);
  CHECK(topology.route_latency(31, 32).value == Approx(1e-6 + 4e-7));
}

TEST_CASE("an all-to-all uses the links of one level of a fat tree equally", "[platforms]") {
  const Platform platform = platform_of(64, two_tapered_levels());
  const Topology topology(platform);
  const std::map<int, int> use = all_to_all_use(topology, platform);
  // Each of 8 leaves sends 8 devices' messages to 56 others over 4 cables; each of 2 blocks has 4 x 4 cables.
  REQUIRE(use.size() == 2 * (8 * 4 + 2 * 16));
  for (const auto& [id, times] : use) {
    CHECK(times == (topology.link_name(id).find("leaf") != std::string::npos ? 8 * 56 / 4 : 32 * 32 / 16));
  }
}

TEST_CASE(
    "the cable up depends only on the target: one cable for one target, all cables for neighbouring targets",
    "[platforms]") {
  const Topology topology(platform_of(64, two_tapered_levels()));
  std::set<int> to_one, to_many;
  for (int i = 0; i < 8; ++i) {
    to_one.insert(route_between(topology, i, 40)[2]);
    to_many.insert(route_between(topology, 0, 40 + i)[2]);
  }
  CHECK(to_one.size() == 1);
  CHECK(to_many.size() == 4);
}

TEST_CASE("four levels of switches of two ports connect 16 nodes, and no cable carries more than its share",
          "[platforms]") {
  const FatTreeLevel level{2, 1, 2, {1e-7}};
  const Platform platform = platform_of(16, FatTreeShape{{level, level, level}, false});
  const Topology topology(platform);
  CHECK(fault_of_routes(platform).empty());
  const std::map<int, int> use = all_to_all_use(topology, platform);
  REQUIRE(use.size() == 3 * 2 * 16);
  const std::map<std::string, int> share = {
      {"leaf - level-2 switch", 14}, {"level-2 switch - level-3 switch", 12}, {"level-3 switch - spine", 8}};
  for (const auto& [id, times] : use) CHECK(times == share.at(topology.link_kind(id)));
}

TEST_CASE("a taper divides the bandwidth above a switch, whatever the number of cables", "[platforms]") {
  const double ports = 30;
  for (const int up : {1, 4, 12}) {
    const Platform platform = platform_of(120, FatTreeShape{{{30, 2.5, up, {0}}}, false});
    const Topology topology(platform);
    double sum = 0;
    for (int id = 0; id < topology.link_count(); ++id) {
      if (topology.link_name(id).starts_with("leaf 3 -> ")) sum += topology.link(id).bandwidth.value;
    }
    CHECK(sum == Approx(ports * 1e9 / 2.5));
  }
}

TEST_CASE("rails put NIC k of neighbouring nodes on one leaf", "[platforms]") {
  Platform platform = platform_of(8, FatTreeShape{{{4, 1, 4, {1e-7}}}, true});
  platform.devices_per_node = platform.network.nics = 2;
  const Topology topology(platform);
  CHECK(fault_of_routes(platform).empty());
  CHECK(route_between(topology, 0, 2).size() == 4);      // nodes 0 and 1, NIC 0
  CHECK(route_between(topology, 0, 3).size() == 4 + 2);  // NIC 0 to NIC 1
  CHECK(route_between(topology, 0, 8).size() == 4 + 2);  // nodes 0 and 4: other leaves
}

TEST_CASE("a fat tree of 16,384 devices has exactly the links of its switches", "[platforms]") {
  const Platform platform = platform_of(16384, FatTreeShape{{{32, 2, 16, {0}}, {32, 1, 16, {0}}}, false});
  const Topology topology(platform);
  // Six links a node (device, memory, NIC; both ways), 512 leaves and 16 x 16 switches above them with 16
  // cables each.
  CHECK(topology.link_count() == 16384 * 6 + 2 * (512 * 16 + 256 * 16));
  CHECK(fault_of_routes(platform).empty());
}

namespace {

DragonflyShape aries(int groups, int cables = 4) {
  DragonflyShape shape;
  shape.groups = groups;
  shape.cables_per_group_pair = cables;
  shape.chassis_cable = {{5e9}, {1e-7}};
  shape.group_cable = {{15e9}, {1e-7}};
  shape.global_cable = {{4e9}, {3e-7}};
  return shape;
}

int hops(const Topology& topology, int from, int to) {
  return static_cast<int>(route_between(topology, from, to).size()) - 4;  // device and NIC at both ends
}

}  // namespace

TEST_CASE("dragonfly routes are connected for 1 to 40 groups, more than a chassis has routers",
          "[platforms]") {
  for (const int groups : {1, 2, 3, 17, 40}) {
    for (const auto routing : {DragonflyShape::Routing::minimal, DragonflyShape::Routing::valiant}) {
      DragonflyShape shape = aries(groups);
      shape.routing = routing;
      CAPTURE(groups);
      CHECK(fault_of_routes(platform_of(384 * groups, shape)).empty());
    }
  }
}

TEST_CASE("minimal dragonfly routes have 0, 1 or 2 hops in a group and at most 5 between groups",
          "[platforms]") {
  const Platform platform = platform_of(384 * 20, aries(20));
  const Topology topology(platform);
  CHECK(hops(topology, 0, 3) == 0);       // the same router
  CHECK(hops(topology, 0, 4) == 1);       // the same chassis
  CHECK(hops(topology, 0, 64) == 1);      // the same slot of another chassis
  CHECK(hops(topology, 0, 64 + 4) == 2);  // another slot and chassis
  for (int to = 384; to < platform.nodes; to += 97) {
    CHECK(hops(topology, 5, to) >= 1);
    CHECK(hops(topology, 5, to) <= 5);
  }
}

TEST_CASE("a dragonfly route and its way back have the same length", "[platforms]") {
  for (const auto routing : {DragonflyShape::Routing::minimal, DragonflyShape::Routing::valiant}) {
    DragonflyShape shape = aries(18);
    shape.routing = routing;
    const Topology topology(platform_of(384 * 18, shape));
    for (int a = 0; a < 384 * 18; a += 211) {
      for (int b = 0; b < a; b += 173) CHECK(hops(topology, a, b) == hops(topology, b, a));
    }
  }
}

TEST_CASE("every two groups have the given number of global cables, and traffic uses them all",
          "[platforms]") {
  const Platform platform = platform_of(384 * 3, aries(3, 12));
  const Topology topology(platform);
  std::map<std::pair<int, int>, std::set<int>> used;
  for (int from = 0; from < platform.nodes; from += 5) {
    for (int to = 0; to < platform.nodes; to += 7) {
      for (const int id : route_between(topology, from, to)) {
        if (topology.link(id).bandwidth.value == 4e9) used[{from / 384, to / 384}].insert(id);
      }
    }
  }
  CHECK(used.size() == 6);
  for (const auto& [groups, cables] : used) CHECK(cables.size() == 12);
}

TEST_CASE("the global cables of a group are spread over all its routers", "[platforms]") {
  const Topology topology(platform_of(384 * 3, aries(3, 48)));
  std::map<int, int> cables;
  for (int id = 0; id < topology.link_count(); ++id) {
    if (topology.link_kind(id) == "global cable") ++cables[topology.link_ends(id).first];
  }
  CHECK(cables.size() == 3 * 96);
  for (const auto& [router, count] : cables) CHECK(count == 1);
}

TEST_CASE("a Valiant route between groups crosses exactly two global cables", "[platforms]") {
  DragonflyShape shape = aries(5);
  shape.routing = DragonflyShape::Routing::valiant;
  const Topology topology(platform_of(384 * 5, shape));
  const auto globals = [&](int from, int to) {
    int count = 0;
    for (const int id : route_between(topology, from, to)) count += topology.link(id).bandwidth.value == 4e9;
    return count;
  };
  CHECK(globals(0, 384) == 2);
  CHECK(globals(900, 17) == 2);
  CHECK(globals(0, 383) == 0);
}

TEST_CASE("adaptive messages between groups choose from two minimal and two Valiant routes", "[platforms]") {
  DragonflyShape shape = aries(5);
  shape.routing = DragonflyShape::Routing::adaptive;
  const Topology topology(platform_of(384 * 5, shape));
  CHECK(topology.choices(0, 383) == 1);
  REQUIRE(topology.choices(900, 17) == 4);
  std::set<int> cables;
  for (unsigned choice = 0; choice < 4; ++choice) {
    std::vector<int> links;
    topology.route(900, 17, choice, links);
    int globals = 0, at = topology.endpoint_vertex(900);
    for (const int id : links) {
      CHECK(topology.link_ends(id).first == at);
      at = topology.link_ends(id).second;
      if (topology.link_kind(id) != "global cable") continue;
      ++globals;
      CHECK(cables.insert(id).second);  // no two choices share a global cable
    }
    CHECK(at == topology.endpoint_vertex(17));
    CHECK(globals == (choice < 2 ? 1 : 2));
    if (choice == 0) CHECK(links == route_between(topology, 900, 17));
  }
}

TEST_CASE("with two groups there is no Valiant route, and a choice with a dead link leads around it",
          "[platforms]") {
  DragonflyShape shape = aries(2);
  shape.routing = DragonflyShape::Routing::adaptive;
  Platform platform = platform_of(384 * 2, shape);
  const Topology topology(platform);
  REQUIRE(topology.choices(0, 500) == 2);
  std::vector<int> second;
  topology.route(0, 500, 1, second);
  for (const int id : second) {
    if (topology.link_kind(id) == "global cable") platform.dead_links = {id};
  }
  REQUIRE(platform.dead_links.size() == 1);
  std::vector<int> around;
  Topology(platform).route(0, 500, 1, around);
  CHECK(around == route_between(topology, 0, 500));
}

TEST_CASE("a dragonfly has exactly the cables of its three ranks", "[platforms]") {
  const Platform platform = platform_of(1, aries(4, 10));
  const int in_groups = 4 * 96 * (15 + 5), between = 4 * 3 * 10, in_node = 6;
  CHECK(Topology(platform).link_count() == in_groups + between + in_node);
}
