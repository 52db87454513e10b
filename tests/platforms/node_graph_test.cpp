#include <catch2/catch.hpp>

#include "built_platforms.hpp"

using namespace stepcast;

namespace {

std::vector<std::string> names(const Topology& topology, int from, int to) {
  std::vector<std::string> result;
  for (const int id : route_between(topology, from, to)) result.push_back(topology.link_name(id));
  return result;
}

/// Two nodes of four devices; two devices on a PCIe switch, one switch on a socket, two NICs.
Platform two_servers() {
  Platform platform = platform_of(2, FatTreeShape{});
  platform.devices_per_node = 4;
  platform.node.kind = NodeShape::Kind::pcie;
  platform.node.sockets = platform.node.devices_per_pcie_switch = 2;
  platform.node.device = platform.node.pcie_switch = {{12e9}, {1e-6}};
  platform.node.inter_socket = {{9e9}, {1e-6}};
  platform.network.nics = 2;
  return platform;
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("endpoints are devices, then hosts, then the storage", "[platforms]") {
  const Platform platform = two_servers();
  CHECK(platform.devices() == 8);
  CHECK(platform.endpoints() == 11);
  CHECK(platform.host_endpoint(1) == 9);
  CHECK(platform.storage_endpoint() == 10);
  CHECK(platform.node_of(5) == 1);
  CHECK(platform.node_of(8) == 0);
  CHECK(platform.node_of(10) == -1);
}

TEST_CASE("a PCIe tree connects devices through their lowest common switch or over the sockets",
          "[platforms]") {
  const Platform platform = two_servers();
  const Topology topology(platform);
  CHECK(fault_of_routes(platform).empty());
  CHECK(names(topology, 0, 1) ==
        Names{"node 0 device 0 -> PCIe switch 0", "node 0 PCIe switch 0 -> device 1"});
  CHECK(names(topology, 0, 2) == Names{"node 0 device 0 -> PCIe switch 0", "node 0 PCIe switch 0 -> socket 0",
                                       "node 0 socket 0 -> socket 1", "node 0 socket 1 -> PCIe switch 1",
                                       "node 0 PCIe switch 1 -> device 2"});
  CHECK(names(topology, 0, platform.host_endpoint(0)).back() == "node 0 socket 0 -> memory");
}

TEST_CASE("a half-duplex link of a device is one link for both directions, and only that link",
          "[platforms]") {
  Platform platform = two_servers();
  platform.node.half_duplex = true;
  const Topology topology(platform);
  const std::vector<int> there = route_between(topology, 0, 2), back = route_between(topology, 2, 0);
  CHECK(there.front() == back.back());
  CHECK(there.back() == back.front());
  CHECK(there[1] != back[3]);
  platform.node.half_duplex = false;
  const Topology full(platform);
  CHECK(route_between(full, 0, 2).front() != route_between(full, 2, 0).back());
}

TEST_CASE("a half-duplex link between sockets is one link for both directions, and only that link",
          "[platforms]") {
  Platform platform = two_servers();
  platform.node.half_duplex_sockets = true;
  const Topology topology(platform);
  const std::vector<int> there = route_between(topology, 0, 2), back = route_between(topology, 2, 0);
  CHECK(there[2] == back[2]);
  CHECK(there.front() != back.back());
  platform.node.half_duplex_sockets = false;
  const Topology full(platform);
  CHECK(route_between(full, 0, 2)[2] != route_between(full, 2, 0)[2]);
}

TEST_CASE(
    "copies without peer access go up to a socket and share one link there, and those of a device 70 % of "
    "its rate each way; other routes do not",
    "[platforms]") {
  Platform platform = two_servers();
  const Topology direct(platform);
  platform.node.peer_access = false;
  platform.node.staging = {7e9};
  const Topology topology(platform);
  const Names near{"node 0 device 0 -> PCIe switch 0", "node 0 PCIe switch 0 -> socket 0",
                   "node 0 device 0 sends copies",     "node 0 memory -> memory",
                   "node 0 device 1 receives copies",  "node 0 socket 0 -> PCIe switch 0",
                   "node 0 PCIe switch 0 -> device 1"};
  CHECK(names(topology, 0, 1) == near);
  const std::vector<int> there = route_between(topology, 0, 1), back = route_between(topology, 3, 0);
  CHECK(topology.link(there[3]).bandwidth.value == 7e9);
  CHECK(back[3] == there[3]);
  CHECK(names(topology, 3, 0)[5] == "node 0 socket 1 -> socket 0");
  CHECK(topology.link(there[2]).bandwidth.value == Approx(0.70 * 7e9));
  CHECK(back[4] != there[2]);  // a device receives while it sends
  CHECK(topology.dotted_link_name(back[4]) != topology.dotted_link_name(there[2]));
  CHECK(route_between(topology, 0, 3)[2] == there[2]);
  for (const int other : {4, platform.host_endpoint(0)})
    CHECK(names(topology, 0, other) == names(direct, 0, other));
  platform.node.kind = NodeShape::Kind::links;
  platform.node.peer = {{50e9}, {1e-7}};
  platform.node.peers = {{0, 1, 1}};
  CHECK(names(Topology(platform), 0, 1) == Names{"node 0 device 0 -> device 1"});
  CHECK(names(Topology(platform), 1, 2)[3] == "node 0 memory -> memory");
}

TEST_CASE("messages of a device leave the node by its own NIC", "[platforms]") {
  Platform platform = two_servers();
  const Topology topology(platform);
  CHECK(names(topology, 3, 4) ==
        Names{"node 0 device 3 -> PCIe switch 1", "node 0 PCIe switch 1 -> socket 1", "node 0 NIC 1 up",
              "node 1 NIC 0 down", "node 1 socket 0 -> PCIe switch 0", "node 1 PCIe switch 0 -> device 0"});
  platform.network.nic_on_pcie_switch = true;
  CHECK(names(Topology(platform), 3, 6) == Names{"node 0 device 3 -> PCIe switch 1", "node 0 NIC 1 up",
                                                 "node 1 NIC 1 down", "node 1 PCIe switch 1 -> device 2"});
}

TEST_CASE("striped NICs act as one NIC with the sum of their bandwidths", "[platforms]") {
  Platform platform = two_servers();
  platform.network.striped = true;
  CHECK(fault_of_routes(platform).empty());
  const Topology topology(platform);
  double bandwidth = 0;
  for (const int id : route_between(topology, 3, 4)) {
    if (topology.link_name(id) == "node 0 NIC 0 up") bandwidth = topology.link(id).bandwidth.value;
  }
  CHECK(bandwidth == 2e9);
}

TEST_CASE("an NVSwitch connects all devices at its own rate, besides the PCIe tree", "[platforms]") {
  Platform platform = two_servers();
  platform.node.kind = NodeShape::Kind::nvswitch;
  platform.node.peer = {{300e9}, {1e-7}};
  const Topology topology(platform);
  CHECK(fault_of_routes(platform).empty());
  CHECK(names(topology, 0, 1) == Names{"node 0 device 0 -> NVSwitch", "node 0 NVSwitch -> device 1"});
  CHECK(topology.link(route_between(topology, 1, 2)[0]).bandwidth.value == 300e9);
}

TEST_CASE(
    "messages between devices without a direct link go over the host, or through a neighbour that relays",
    "[platforms]") {
  Platform platform = two_servers();
  platform.node.kind = NodeShape::Kind::links;
  platform.node.peer = {{18e9}, {1e-7}};
  platform.node.peers = {{0, 1, 1}, {1, 2, 2}, {2, 3, 1}};
  const Topology topology(platform);
  CHECK(names(topology, 1, 2) == Names{"node 0 device 1 -> device 2"});
  CHECK(topology.link(route_between(topology, 1, 2)[0]).bandwidth.value == 36e9);
  CHECK(names(topology, 0, 2).size() == 5);
  platform.node.devices_relay = true;
  CHECK(names(Topology(platform), 0, 2) ==
        Names{"node 0 device 0 -> device 1", "node 0 device 1 -> device 2"});
}

TEST_CASE("shared storage is read through its servers, the gateway, the client and the first NIC",
          "[platforms]") {
  Platform platform = two_servers();
  platform.storage = {Storage::Kind::shared, {1e12}, {40e9}, {5e9}, {1e-4}};
  const Topology topology(platform);
  const int storage = platform.storage_endpoint();
  CHECK(fault_of_routes(platform).empty());
  CHECK(names(topology, storage, platform.host_endpoint(1)) ==
        Names{"storage out", "storage gateway out", "storage client 1 read", "node 1 NIC 0 down",
              "node 1 socket 0 -> memory"});
  CHECK(names(topology, platform.host_endpoint(0), storage) ==
        Names{"node 0 memory -> socket 0", "node 0 NIC 0 up", "storage client 0 write", "storage gateway in",
              "storage in"});
  const std::vector<int> links = route_between(topology, storage, 0);
  CHECK(topology.link(links[0]).bandwidth.value == 1e12);
  CHECK(topology.link(links[1]).bandwidth.value == 40e9);
  CHECK(topology.link(links[2]).bandwidth.value == 5e9);
}

TEST_CASE("a local disk is a link of each node", "[platforms]") {
  Platform platform = two_servers();
  platform.storage = {Storage::Kind::local, {3e9}, {0}, {3e9}, {1e-4}};
  const Topology topology(platform);
  CHECK(fault_of_routes(platform).empty());
  CHECK(names(topology, platform.storage_endpoint(), platform.host_endpoint(1)) ==
        Names{"node 1 disk -> socket 0", "node 1 socket 0 -> memory"});
}

TEST_CASE("a platform without storage refuses its storage endpoint", "[platforms][errors]") {
  const Platform platform = two_servers();
  const Topology topology(platform);
  std::vector<int> links;
  CHECK_THROWS_WITH(topology.route(platform.storage_endpoint(), 0, links), "this platform has no storage");
}
