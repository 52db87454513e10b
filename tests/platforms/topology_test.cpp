#include <catch2/catch.hpp>

#include "routes.hpp"
#include "shapes.hpp"

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
