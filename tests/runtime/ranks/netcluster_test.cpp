#include "runtime/ranks/netcluster.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "platforms/topology.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast::netcluster_test {
namespace {

LinkTable some_links() {
  return {{5e-6}, {1e8}, {{{1024}, {1e-6}, 0.5}, {{INFINITY}, {0}, 1}}};
}

Platform platform_of(const Cluster& cluster) {
  const std::string text = platform_text({"measured", "a test", cluster, some_links()});
  const YamlNode node = parse_yaml(text, "measured.yaml");
  return read_platform(YamlValue(node, ""));
}

}  // namespace

TEST_CASE("clusters are read from the command line", "[validate]") {
  CHECK(read_cluster("memory", 2).kind == Cluster::Kind::memory);
  CHECK(read_cluster("loopback", 2).sockets());
  const Cluster racks = read_cluster("netcluster:1gbit,racks=2,uplink=200mbit", 4);
  CHECK(racks.rate == 1e9);
  CHECK(racks.uplink == 2e8);
  CHECK(racks.racks == 2);
  CHECK(rate_text(racks.rate) == "1000000kbit");
  CHECK_THROWS_WITH(read_cluster("cloud", 2),
                    "--cluster: expected memory, loopback or netcluster:RATE, got \"cloud\"");
  CHECK_THROWS_WITH(read_cluster("netcluster:fast", 2),
                    "--cluster: expected a rate such as 100mbit or 1gbit, got \"fast\"");
  CHECK(racks.packet == 65536);
  CHECK(read_cluster("netcluster:100mbit,packet=8192", 4).packet == 8192);
  CHECK_THROWS_WITH(read_cluster("netcluster:1gbit,packet=8k", 2),
                    "--cluster: expected packet=BYTES, 4096 to 65536, got \"packet=8k\"");
  CHECK_THROWS_WITH(read_cluster("netcluster:1gbit,pocket=8192", 2),
                    Catch::Contains("packet=BYTES, racks=2 or uplink=RATE"));
  CHECK_THROWS_WITH(read_cluster("netcluster:1gbit,racks=2", 4),
                    Catch::Contains("uplink=RATE with two racks"));
  CHECK_THROWS_WITH(read_cluster("netcluster:1gbit,racks=2,uplink=1mbit", 3),
                    "--ranks: two racks need an even number");
  CHECK_THROWS_WITH(read_cluster("netcluster:1gbit", 17), "--ranks: a netcluster has at most 16 nodes");
  CHECK(read_cluster("memory", 2).label() == "memory");
  CHECK(read_cluster("memory", 2, "mpi").label() == "memory over mpi");
  CHECK_THROWS_WITH(read_cluster("memory", 2, "pigeon"), "--transport: expected own or mpi, got \"pigeon\"");
}

TEST_CASE("a measured platform is read back with its latency, bandwidth and message costs", "[validate]") {
  for (const char* name :
       {"memory", "loopback", "netcluster:1gbit", "netcluster:1gbit,racks=2,uplink=100mbit"}) {
    CAPTURE(name);
    const Platform platform = platform_of(read_cluster(name, 4));
    CHECK(platform.devices() == 4);
    const Topology topology(platform);
    CHECK(topology.route_latency(0, 1).value == Approx(5e-6));
    std::vector<int> route;
    topology.route(0, 1, route);
    double least = 1e300;
    for (const int link : route) least = std::min(least, topology.link(link).bandwidth.value);
    CHECK(least == Approx(1e8));
    const auto& costs = platform.nodes == 1 ? platform.local_message_costs : platform.message_costs;
    CHECK(message_cost(costs, {100}).bandwidth_factor == 0.5);
    CHECK(message_cost(costs, {2000}).overhead.value == 0);
  }
}

TEST_CASE("the uplink between two racks has its set share of the measured bandwidth", "[validate]") {
  const Platform platform = platform_of(read_cluster("netcluster:1gbit,racks=2,uplink=200mbit", 8));
  const Topology topology(platform);
  std::vector<int> route;
  topology.route(3, 4, route);
  double least = 1e300;
  for (const int link : route) least = std::min(least, topology.link(link).bandwidth.value);
  CHECK(least == Approx(0.2e8));
}

}  // namespace stepcast::netcluster_test
