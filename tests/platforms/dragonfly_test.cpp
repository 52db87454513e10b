#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "routes.hpp"
#include "shapes.hpp"

using namespace stepcast;

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

TEST_CASE("a dragonfly has exactly the cables of its three ranks", "[platforms]") {
  const Platform platform = platform_of(1, aries(4, 10));
  const int in_groups = 4 * 96 * (15 + 5), between = 4 * 3 * 10, in_node = 6;
  CHECK(Topology(platform).link_count() == in_groups + between + in_node);
}
