#include "runtime/ranks/cluster.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "platforms/topology.hpp"
#include "tests/report/temporary_folder.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast::hosts_test {

namespace {

/// The error text of a hostfile, without the folder.
std::string error_of(const std::string& text) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "hosts";
  write_atomically(file, text);
  try {
    read_hosts(file);
  } catch (const InputError& error) {
    return std::string(error.what()).substr(folder.path().string().size() + 1);
  }
  return "";
}

std::string bind_error(const std::string& text) {
  try {
    read_bind_address(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a hostfile names hosts, slots and addresses", "[validate]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "hosts";
  write_atomically(file,
                   "# a comment\n\nnode-1.lan slots=4  # another\nnode_2\taddress=10.0.0.2 slots=2\r\n");
  const std::vector<Host> hosts = read_hosts(file);
  REQUIRE(hosts.size() == 2);
  CHECK(hosts[0].name == "node-1.lan");
  CHECK(hosts[0].slots == 4);
  CHECK(hosts[0].address.empty());
  CHECK(hosts[1].name == "node_2");
  CHECK(hosts[1].slots == 2);
  CHECK(hosts[1].address == "10.0.0.2");
}

TEST_CASE("a hostfile is refused with its place", "[validate][errors]") {
  CHECK(error_of("") == "hosts:1:1: expected a host, got an empty file");
  CHECK(error_of("a\n-oProxyCommand=x\n") ==
        "hosts:2:1: expected a host name of letters, digits, '.', '_' and '-', got \"-oProxyCommand=x\"");
  CHECK(error_of("a;reboot\n") ==
        "hosts:1:1: expected a host name of letters, digits, '.', '_' and '-', got \"a;reboot\"");
  CHECK(error_of("a slots=\n") == "hosts:1:3: expected slots=1 to slots=64, got \"slots=\"");
  CHECK(error_of("a slots=65\n") == "hosts:1:3: expected slots=1 to slots=64, got \"slots=65\"");
  CHECK(error_of("a slots=40\nb slots=40\n") ==
        "hosts:2:1: expected at most 64 slots in all, those of this host included, got \"b\"");
  CHECK(error_of("a  address=0.0.0.0\n") ==
        "hosts:1:4: expected address=IPV4, the address of one interface, got \"address=0.0.0.0\"");
  CHECK(error_of("a cores=2\n") == "hosts:1:3: expected slots=N or address=IPV4, got \"cores=2\"");
}

TEST_CASE("ranks meet at the address of one interface", "[validate][errors]") {
  CHECK(read_bind_address("10.0.0.1").port == 0);
  CHECK(read_bind_address("10.0.0.1:29500").port == 29500);
  CHECK(read_bind_address("10.0.0.1:29500").address == "10.0.0.1");
  for (const char* text :
       {"0.0.0.0", "0.0.0.0:29500", "node1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:65536", ""})
    CHECK(bind_error(text) ==
          std::string("--bind: expected ADDRESS or ADDRESS:PORT with the IPv4 address of one "
                      "interface, got \"") +
              text + "\"");
}

}  // namespace stepcast::hosts_test

namespace stepcast::netcluster_test {

namespace {

LinkTable some_links() {
  return {{5e-6}, {1e8}, {{{1024}, {1e-6}, 0.5}, {{INFINITY}, {0}, 1}}};
}

Platform platform_of(const Cluster& cluster) {
  const std::string text = platform_text({"measured", "a test", cluster, some_links()});
  const YamlNode node = parse_yaml(text, "measured.yaml");
  return read_platform(YamlValue(node, ""), {});
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
