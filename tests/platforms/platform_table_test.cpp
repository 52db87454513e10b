#include "platforms/platform_table.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "shapes.hpp"

using namespace stepcast;

namespace {

Platform two_leaves() {
  Platform platform = platform_of(4, FatTreeShape{{{2, 2, 1, {1e-6}}}, false});
  platform.name = "two-leaves";
  platform.source = "a test";
  platform.device_name = "cpu-core";
  platform.message_costs = {{{4096}, {1e-6}, 0.5}, {{INFINITY}, {3e-6}, 1}};
  platform.local_message_costs = {{{INFINITY}, {0}, 1}};
  return platform;
}

}  // namespace

TEST_CASE("the table of a platform counts its links by kind", "[platforms]") {
  CHECK(platform_table(two_leaves()) ==
        "platform    two-leaves\n"
        "source      a test\n"
        "devices     4 x cpu-core, 1 a node, 4 nodes of at most 4\n"
        "network     1 NIC a node\n"
        "\n"
        "links (one way)                              count     bandwidth     latency\n"
        "device - socket                                  8       10 GB/s        0 us\n"
        "memory - socket                                  8       10 GB/s        0 us\n"
        "NIC                                              8        1 GB/s      0.5 us\n"
        "leaf - spine                                     4        1 GB/s        1 us\n"
        "\n"
        "bisection   1 GB/s one way (half of the cables up from level 1)\n"
        "messages    up to 4 KiB: 1 us + 0.5 of the route's bandwidth\n"
        "            any size: 3 us + 1 of the route's bandwidth\n"
        "in a node   any size: 0 us + 1 of the route's bandwidth\n"
        "storage     none described\n");
}

TEST_CASE("the table of a route names every link, the latency in all and the narrowest link", "[platforms]") {
  CHECK(route_table(two_leaves(), 0, 3) ==
        "device 0 to device 3: 6 links\n"
        "  node 0 device 0 -> socket 0                                    10 GB/s        0 us\n"
        "  node 0 NIC 0 up                                                 1 GB/s      0.5 us\n"
        "  leaf 0 -> spine 0                                               1 GB/s        1 us\n"
        "  spine 0 -> leaf 1                                               1 GB/s        1 us\n"
        "  node 3 NIC 0 down                                               1 GB/s      0.5 us\n"
        "  node 3 socket 0 -> device 0                                    10 GB/s        0 us\n"
        "  in all                                                          1 GB/s        3 us\n"
        "narrowest: node 0 NIC 0 up\n");
  CHECK(route_table(two_leaves(), 5, 5) == "host of node 1 to host of node 1: 0 links\n");
  CHECK_THROWS_WITH(route_table(two_leaves(), 0, 9), "endpoint 9 is not one of 0 to 8");
}
