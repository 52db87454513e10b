#include <catch2/catch.hpp>
#include <functional>

#include "built_platforms.hpp"
#include "platforms/platform_table.hpp"

using namespace stepcast;

TEST_CASE("sites are switches, and every two of them share one wide-area link", "[platforms]") {
  const Platform platform = platform_of(9, SitesShape{3, {{125e6}, {25e-3}}});
  const Topology topology(platform);
  CHECK(fault_of_routes(platform).empty());
  CHECK(route_between(topology, 0, 2).size() == 4);
  REQUIRE(route_between(topology, 0, 3).size() == 5);
  CHECK(route_between(topology, 0, 3)[2] == route_between(topology, 2, 5)[2]);
  CHECK(route_between(topology, 0, 3)[2] != route_between(topology, 3, 0)[2]);
  CHECK(route_between(topology, 0, 3)[2] != route_between(topology, 0, 6)[2]);
  CHECK(fault_of_routes(platform_of(10, SitesShape{3, {{125e6}, {25e-3}}})).empty());
  CHECK(topology.route_latency(0, 8).value == Approx(25e-3 + 1e-6));
  CHECK(topology.link_name(route_between(topology, 0, 3)[2]) == "site 0 -> site 1");
}

namespace {

TorusShape torus(int x, int y, int z) {
  return {{x, y, z}, {{{{9e9}, {1e-7}}, {{4e9}, {1e-7}}, {{15e9}, {1e-7}}}}, 2};
}

int around(int a, int b, int size) {
  const int ahead = (b - a + size) % size;
  return std::min(ahead, size - ahead);
}

}  // namespace

TEST_CASE("torus routes are as long as the sum of the shorter ways round", "[platforms]") {
  for (const TorusShape& shape : {torus(25, 16, 24), torus(5, 4, 1), torus(2, 2, 2), torus(1, 1, 7)}) {
    const auto [x, y, z] = shape.size;
    const Platform platform = platform_of(2 * x * y * z, shape);
    const Topology topology(platform);
    CHECK(fault_of_routes(platform).empty());
    const int step = std::max(1, platform.nodes / 53);
    for (int a = 0; a < platform.nodes; a += step) {
      for (int b = 0; b < platform.nodes; b += step) {
        if (a == b) continue;
        const int p = a / 2, q = b / 2;
        const int distance =
            around(p % x, q % x, x) + around(p / x % y, q / x % y, y) + around(p / x / y, q / x / y, z);
        REQUIRE(route_between(topology, a, b).size() == 4U + static_cast<unsigned>(distance));
      }
    }
  }
}

TEST_CASE("torus routes turn from x to y to z, each with its own bandwidth", "[platforms]") {
  const Topology topology(platform_of(2 * 4 * 4 * 4, torus(4, 4, 4)));
  const std::vector<int> links = route_between(topology, 0, 2 * (1 + 4 + 16));
  REQUIRE(links.size() == 7);
  CHECK(topology.link_name(links[2]) == "router (0, 0, 0) -> router (1, 0, 0)");
  CHECK(topology.link_name(links[4]) == "router (1, 1, 0) -> router (1, 1, 1)");
  CHECK(topology.link(links[2]).bandwidth.value == 9e9);
  CHECK(topology.link(links[3]).bandwidth.value == 4e9);
  CHECK(topology.link(links[4]).bandwidth.value == 15e9);
}

TEST_CASE("messages to the opposite side of a ring use both directions equally", "[platforms]") {
  const Topology topology(platform_of(2 * 8, torus(8, 1, 1)));
  std::vector<int> use(topology.link_count());
  for (int router = 0; router < 8; ++router) {
    for (const int id : route_between(topology, 2 * router, 2 * ((router + 4) % 8))) ++use[id];
  }
  for (int id = 0; id < topology.link_count(); ++id) {
    if (topology.link_name(id).starts_with("router")) CHECK(use[id] == 2);
  }
}

namespace {

/// Bandwidth of all links whose name begins with `part`.
double sum_of(const Topology& topology, const std::string& kind,
              const std::function<bool(const std::string&)>& counts) {
  double sum = 0;
  for (int id = 0; id < topology.link_count(); ++id) {
    if (topology.link_kind(id) == kind && counts(topology.link_name(id)))
      sum += topology.link(id).bandwidth.value;
  }
  return sum;
}

}  // namespace

TEST_CASE("half of the NICs limit the bisection of a switch and of a full fat tree", "[platforms]") {
  CHECK(bisection(platform_of(10, FatTreeShape{})).bandwidth.value == Approx(5e9));
  const FatTreeShape full{{{8, 1, 8, {0}}, {8, 1, 8, {0}}}, false};
  CHECK(bisection(platform_of(128, full)).bandwidth.value == Approx(64e9));
}

TEST_CASE("a taper limits the bisection to the cables above half of the leaves", "[platforms]") {
  const Platform platform = platform_of(64, FatTreeShape{{{8, 2, 4, {0}}, {4, 1.5, 5, {0}}}, false});
  const Topology topology(platform);
  const double above_first_half = sum_of(topology, "level-2 switch - spine", [](const std::string& name) {
    return name.starts_with("level-2 switch ") && std::stoi(name.substr(15)) < 4;
  });
  CHECK(bisection(platform).bandwidth.value == Approx(64e9 / 2 / 2 / 1.5));
  CHECK(bisection(platform).bandwidth.value == Approx(above_first_half));
  CHECK(bisection(platform_of(8, FatTreeShape{{{8, 2, 4, {0}}}, false})).bandwidth.value == Approx(4e9));
}

TEST_CASE("the bisection of a dragonfly is that of the cables between two halves of its groups",
          "[platforms]") {
  DragonflyShape shape;
  shape.groups = 4;
  shape.cables_per_group_pair = 3;
  shape.chassis_cable = shape.group_cable = {{5e9}, {0}};
  shape.global_cable = {{4e9}, {0}};
  const Platform platform = platform_of(4 * 384, shape);
  const double crossing = sum_of(Topology(platform), "global cable", [](const std::string& name) {
    return name[6] < '2' && name[name.find("-> group ") + 9] >= '2';
  });
  CHECK(crossing == Approx(2 * 2 * 3 * 4e9));
  CHECK(bisection(platform).bandwidth.value == Approx(crossing));
  CHECK(bisection(platform_of(384, shape)).method == "half of all NICs");
}

TEST_CASE("the bisection of a torus is its weakest pair of cuts", "[platforms]") {
  const TorusShape shape{{4, 6, 8}, {{{{9e9}, {0}}, {{4e9}, {0}}, {{9e9}, {0}}}}, 2};
  Platform platform = platform_of(2 * 4 * 6 * 8, shape);
  platform.network.nic.bandwidth = {20e9};
  CHECK(bisection(platform).bandwidth.value == Approx(2 * 4 * 8 * 4e9));
  CHECK(bisection(platform).method == "two cuts across y of the whole torus");
}

TEST_CASE("the long link is the bisection of two sites", "[platforms]") {
  CHECK(bisection(platform_of(8, SitesShape{2, {{125e6}, {0.05}}})).bandwidth.value == Approx(125e6));
}
