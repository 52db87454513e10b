#include "platforms/platform.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <string>

#include "built_platforms.hpp"
#include "core/error.hpp"
#include "core/keys.hpp"
#include "platforms/platform_keys.hpp"
#include "platforms/platform_table.hpp"

using namespace stepcast;

namespace {

const std::string kNode =
    "name: tiny\nsource: a test\ndevice: cpu-core\nnodes: 4\nmax_nodes: 8\n"
    "node:\n  kind: pcie\n  devices: 2\n  device_link: {bandwidth: 12 GB/s, latency: 1 us}\n"
    "  memory: {bandwidth: {value: 60 GB/s, source: a test}, latency: 0 us}\n";
const std::string kNetwork = "network:\n  kind: switch\n  bandwidth: 10 Gbit/s\n  latency: 5 us\n";
const std::string kMessages =
    "messages:\n  between_nodes:\n    - {up_to: 4 KiB, overhead: 1 us, bandwidth_factor: 0.5}\n"
    "    - {overhead: 3 us, bandwidth_factor: 1}\n  inside_node: [{overhead: 0 us, bandwidth_factor: 1}]\n";

Platform read(const std::string& text) {
  const YamlNode root = parse_yaml(text, "f.yaml");
  return read_platform(YamlValue(root, ""), {});
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("read_platform accepts plain values and values with a source", "[platforms]") {
  const Platform platform = read(kNode + kNetwork + kMessages);
  CHECK(platform.device_name == "cpu-core");
  CHECK(platform.devices() == 8);
  CHECK(platform.node.memory.bandwidth.value == 60e9);
  CHECK(platform.network.nic.bandwidth.value == 1.25e9);
  CHECK(platform.network.nic.latency.value == Approx(2.5e-6));
  CHECK(platform.storage.kind == Storage::Kind::none);
}

TEST_CASE("message_cost returns the first row whose size suffices", "[platforms]") {
  const Platform platform = read(kNode + kNetwork + kMessages);
  CHECK(message_cost(platform.message_costs, {0}).overhead.value == Approx(1e-6));
  CHECK(message_cost(platform.message_costs, {4096}).overhead.value == Approx(1e-6));
  CHECK(message_cost(platform.message_costs, {4097}).overhead.value == Approx(3e-6));
  CHECK(message_cost(platform.local_message_costs, {1e12}).bandwidth_factor == 1);
}

TEST_CASE("a key of another kind of node or network is an unknown key", "[platforms][errors]") {
  CHECK(error_of(kNode + "  peer_link: {bandwidth: 1 GB/s, latency: 0 us}\n" + kNetwork + kMessages) ==
        "f.yaml:11:3: node.peer_link: unknown key (expected one of: kind, devices, sockets, "
        "devices_per_pcie_switch, "
        "device_link, device_link_duplex, pcie_switch_link, inter_socket_link, inter_socket_duplex, memory, "
        "source, peer_access, staging)");
  CHECK(error_of(kNode + kNetwork + "  levels: []\n" + kMessages)
            .starts_with("f.yaml:15:3: network.levels: unknown key"));
  CHECK(error_of(kNode + "network: {kind: torrus}\n") ==
        "f.yaml:11:17: network.kind: expected one of switch, fat_tree, dragonfly, torus, sites, got "
        "\"torrus\"; did you "
        "mean \"torus\"?");
}

TEST_CASE("devices without peer access share a rate for copies, unless the platform says that they have it",
          "[platforms]") {
  const auto node = [](const std::string& name, const std::string& more) {
    const YamlNode root = parse_yaml(kNode + more + kNetwork + kMessages, "f.yaml");
    return read_platform(YamlValue(root, ""), shipped_device(name)).node;
  };
  CHECK(node("a100-40gb", "").peer_access);
  CHECK_FALSE(node("rtx-4090", "").peer_access);
  CHECK(node("rtx-3090", "  peer_access: true\n").peer_access);
  CHECK(node("rtx-3090", "").staging.value == Approx(1.07 * node("rtx-3090", "").device.bandwidth.value));
  CHECK_FALSE(node("rtx-3090", "").staging_given);
  const NodeShape given = node("a40", "  peer_access: false\n  staging: {value: 30 GB/s, source: a test}\n");
  CHECK(given.staging.value == 30e9);
  CHECK(given.staging_given);
  CHECK(
      error_of(kNode + "  staging: 1 GB/s\n" + kNetwork + kMessages) ==
      "f.yaml:11:12: node.staging: only valid with peer_access: false, because other copies are not staged");
}

TEST_CASE("more nodes than the real machine has are refused", "[platforms][errors]") {
  std::string text = kNode;
  text.replace(text.find("nodes: 4"), 8, "nodes: 9");
  CHECK(error_of(text + kNetwork + kMessages) ==
        "f.yaml:4:8: nodes: expected an integer from 1 to 8, got \"9\"");
}

TEST_CASE("more nodes than the fabric can hold are refused", "[platforms][errors]") {
  const std::string torus =
      "network: {kind: torus, bandwidth: 1 GB/s, latency: 1 us, routers: [3, 1, 1], nodes_per_router: 2,\n"
      "  x_cable: {bandwidth: 1 GB/s, latency: 0 us}, y_cable: {bandwidth: 1 GB/s, latency: 0 us},\n"
      "  z_cable: {bandwidth: 1 GB/s, latency: 0 us}}\n";
  CHECK(error_of(kNode + torus + kMessages) ==
        "f.yaml:5:12: max_nodes: expected at most 6 nodes, which is the capacity of this fabric, got \"8\"");
}

TEST_CASE("links between devices that do not exist are refused", "[platforms][errors]") {
  std::string text = kNode + "  peer_link: {bandwidth: 1 GB/s, latency: 0 us}\n  peers: [[0, 2]]\n";
  text.replace(text.find("kind: pcie"), 10, "kind: links");
  CHECK(error_of(text) == "f.yaml:12:15: node.peers[0][1]: expected an integer from 0 to 1, got \"2\"");
  text.replace(text.find("[[0, 2]]"), 8, "[[1, 1]]");
  CHECK(error_of(text) == "f.yaml:12:11: node.peers[0]: a device cannot be linked to itself");
  text.replace(text.find("[[1, 1]]"), 8, "[fast]");
  CHECK(error_of(text) ==
        "f.yaml:12:11: node.peers[0]: expected [device, device] or [device, device, cables], got \"fast\"");
}

TEST_CASE("the sizes of message rows must increase, and the last row has none", "[platforms][errors]") {
  const std::string row = "{up_to: 4 KiB, overhead: 1 us, bandwidth_factor: 1}";
  const std::string last = "{overhead: 1 us, bandwidth_factor: 1}";
  const auto with = [](const std::string& rows) {
    return kNode + kNetwork + "messages:\n  between_nodes: [" + rows + "]\n";
  };
  CHECK(error_of(with(row)) == "f.yaml:16:18: messages.between_nodes: expected a last row without up_to");
  CHECK(error_of(with(row + ", " + row)) ==
        "f.yaml:16:80: messages.between_nodes[1].up_to: expected a value above that of the row before");
  CHECK(error_of(with(last + ", " + last)) ==
        "f.yaml:16:58: messages.between_nodes[1]: expected no row after the row without up_to");
  CHECK(error_of(with("")) == "f.yaml:16:18: messages.between_nodes: expected a last row without up_to");
}

TEST_CASE("NICs on PCIe switches that do not exist are refused", "[platforms][errors]") {
  CHECK(error_of(kNode + kNetwork + "  nics_on: pcie_switch\n") ==
        "f.yaml:15:12: network.nics_on: this node has no PCIe switches (node.devices_per_pcie_switch)");
}

TEST_CASE("the error names a missing link", "[platforms][errors]") {
  std::string text = kNode + kNetwork;
  text.replace(text.find("latency: 5 us"), 13, "source: x");
  CHECK(error_of(text) == "f.yaml:12:3: network.latency: missing (expected a time such as \"1 us\")");
  text = kNode;
  text.replace(text.find("devices: 2"), 10, "sockets: 2");
  CHECK(error_of(text + kNetwork) ==
        "f.yaml:7:3: node.inter_socket_link: missing (expected {bandwidth: ..., latency: ...})");
}

TEST_CASE("every shipped platform is right by the table of keys", "[platforms][keys]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STEPCAST_SOURCE_DIR "/platforms")) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    const YamlNode root = read_yaml(entry.path());
    CHECK(key_errors(YamlValue(root, ""), platform_keys(), Required::all) == std::vector<std::string>{});
    ++count;
  }
  CHECK(count > 20);
}

TEST_CASE("keys of another kind of node or network are unknown", "[platforms][keys][errors]") {
  const YamlNode node = parse_yaml("{kind: pcie, peers: [[0, 1]]}", "f");
  CHECK_THROWS_WITH(read_map(YamlValue(node, ""), node_keys(), "pcie"),
                    Catch::Contains("peers: unknown key"));
  CHECK_NOTHROW(read_map(YamlValue(node, ""), node_keys(), "links"));
}

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
