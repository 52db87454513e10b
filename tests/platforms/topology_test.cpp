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
