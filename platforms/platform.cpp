#include "platforms/platform.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <climits>
#include <cmath>
#include <limits>

#include "platforms/platform_keys.hpp"

namespace stepcast {

int Platform::node_of(int endpoint) const {
  if (endpoint < devices()) return endpoint / devices_per_node;
  return endpoint < storage_endpoint() ? endpoint - devices() : -1;
}

const MessageCost& message_cost(const std::vector<MessageCost>& costs, Bytes size) {
  return *std::find_if(costs.begin(), costs.end() - 1,
                       [size](const MessageCost& row) { return size <= row.up_to; });
}

namespace {

/// The value of `key`, given plainly or as `{value: ..., source: ...}`.
YamlValue sourced(const YamlMap& map, std::string_view key, std::string_view expected) {
  const YamlValue value = map.at(key, expected);
  return value.is(YamlNode::Kind::mapping) ? read_map(value, sourced_keys()).at("value", expected) : value;
}

/// The integer at `key`.
int count_at(const YamlMap& map, std::string_view key, int low, int high) {
  return static_cast<int>(sourced(map, key, "an integer").integer(low, high));
}

/// The integer at `key`; `otherwise` if the key is missing.
int count_or(const YamlMap& map, std::string_view key, int low, int high, int otherwise) {
  return map.has(key) ? count_at(map, key, low, high) : otherwise;
}

/// The link described by the keys `bandwidth` and `latency` of a mapping.
Link link_of(const YamlMap& map) {
  return {sourced(map, "bandwidth", "a rate such as \"12 GB/s\"").bytes_per_second(),
          sourced(map, "latency", "a time such as \"1 us\"").seconds()};
}

/// The link described by the mapping at `key`: `{bandwidth: 12 GB/s, latency: 1 us, source: "..."}`.
Link link_at(const YamlMap& map, std::string_view key) {
  const YamlValue value = map.at(key, "{bandwidth: ..., latency: ...}");
  return link_of(read_map(value, link_keys()));
}

constexpr std::size_t kMaxPeers = 1024;
constexpr int kMaxCables = 64;
constexpr int kMaxSockets = 16;
constexpr int kMaxDevicesPerNode = 256;

PeerLink read_peer(const YamlValue& value, int devices) {
  const char* form = "[device, device] or [device, device, cables]";
  if (!value.is(YamlNode::Kind::sequence)) value.expected(form);
  const std::vector<YamlValue> items = value.list();
  if (items.size() != 2 && items.size() != 3) value.expected(form);
  PeerLink peer;
  peer.a = static_cast<int>(items[0].integer(0, devices - 1));
  peer.b = static_cast<int>(items[1].integer(0, devices - 1));
  if (items.size() == 3) peer.count = static_cast<int>(items[2].integer(1, kMaxCables));
  if (peer.a == peer.b) value.refuse("a device cannot be linked to itself");
  return peer;
}

void read_peers(const YamlMap& map, int devices, NodeShape& node) {
  node.peer = link_at(map, "peer_link");
  if (const auto relay = map.maybe("relay")) node.devices_relay = relay->one_of({"host", "devices"}) == 1;
  const YamlValue list = map.at("peers", "a list of [device, device]");
  for (const YamlValue& item : list.list()) {
    if (node.peers.size() == kMaxPeers) list.refuse("more than 1024 pairs");
    node.peers.push_back(read_peer(item, devices));
  }
}

/// Rate of all copies of a node through host memory: what tf_cnn_benchmarks loses on two to eight GeForce RTX
/// 3090 (VGG-16 and ResNet-50 in fp16, server-gear.com) fits 12 GB/s, which is the middle of the default
/// range of links inside a server, 0.67 to 1.05 times this value. Nothing that was measured on other servers
/// is known.
constexpr BytesPerSecond kStaging{14e9};

void read_peer_access(const YamlMap& map, const std::string& device, NodeShape& node) {
  const auto given = map.maybe("peer_access");
  node.peer_access = given ? given->boolean() : has_peer_access(device);
  const bool rate = map.has("staging");
  if (rate && node.peer_access)
    map.at("staging").refuse("only valid with peer_access: false, because other copies are not staged");
  if (!node.peer_access) node.staging = rate ? sourced(map, "staging", "").bytes_per_second() : kStaging;
}

/// Reads `node:`. @param devices  receives the number of devices of a node
NodeShape read_node(const YamlValue& value, const std::string& device, int& devices) {
  NodeShape node;
  const std::vector<std::string> kinds = {"single", "pcie", "switch", "links"};
  const std::size_t kind = value.any_map().at("kind", "single, pcie, switch or links").one_of(kinds);
  node.kind = static_cast<NodeShape::Kind>(kind);
  const YamlMap map = read_map(value, node_keys(), kinds[kind]);
  const bool single = node.kind == NodeShape::Kind::single;
  devices = count_or(map, "devices", 1, single ? 1 : kMaxDevicesPerNode, 1);
  node.sockets = count_or(map, "sockets", 1, kMaxSockets, 1);
  node.devices_per_pcie_switch = count_or(map, "devices_per_pcie_switch", 0, devices, 0);
  node.device = link_at(map, "device_link");
  if (const auto duplex = map.maybe("device_link_duplex"))
    node.half_duplex = duplex->one_of({"full", "half"}) == 1;
  node.memory = link_at(map, "memory");
  if (node.devices_per_pcie_switch > 0) node.pcie_switch = link_at(map, "pcie_switch_link");
  if (node.sockets > 1) node.inter_socket = link_at(map, "inter_socket_link");
  if (const auto duplex = map.maybe("inter_socket_duplex"))
    node.half_duplex_sockets = duplex->one_of({"full", "half"}) == 1;
  if (node.kind == NodeShape::Kind::nvswitch) node.peer = link_at(map, "peer_link");
  if (node.kind == NodeShape::Kind::links) read_peers(map, devices, node);
  if (!single) read_peer_access(map, device, node);
  return node;
}

constexpr int kMaxNics = 64;
constexpr std::size_t kMaxLevels = 7;  // FatTree::route keeps a fixed array
constexpr int kMaxSwitchPorts = 4096;
constexpr int kMaxTreePorts = 1 << 24;
constexpr int kMaxTorusSize = 256;

FatTreeLevel read_level(const YamlValue& value) {
  const YamlMap map = read_map(value, level_keys());
  FatTreeLevel level;
  level.down = count_at(map, "down", 1, kMaxSwitchPorts);
  level.taper = sourced(map, "taper", "a number >= 1, such as 2 for 2:1").number(1, kMaxSwitchPorts);
  level.up = count_or(map, "up", 1, level.down,
                      std::max(1, static_cast<int>(std::lround(level.down / level.taper))));
  level.latency = sourced(map, "latency", "a time such as \"0.1 us\"").seconds();
  return level;
}

FatTreeShape read_fat_tree(const YamlMap& map) {
  FatTreeShape shape;
  if (const auto rails = map.maybe("rails")) shape.rails = rails->boolean();
  const YamlValue levels = map.at("levels", "a list of levels from the leaves up, without the top");
  int ports = 1;
  for (const YamlValue& item : levels.list()) {
    if (shape.levels.size() == kMaxLevels) levels.refuse("more than 7 levels below the top");
    shape.levels.push_back(read_level(item));
    if (shape.levels.back().down > kMaxTreePorts / ports) levels.refuse("more than 16777216 ports");
    ports *= shape.levels.back().down;
  }
  return shape;
}

DragonflyShape read_dragonfly(const YamlMap& map) {
  DragonflyShape shape;
  shape.ports_per_router = count_at(map, "nodes_per_router", 1, 64);
  shape.routers_per_chassis = count_at(map, "routers_per_chassis", 1, 64);
  shape.chassis_per_group = count_at(map, "chassis_per_group", 1, 64);
  shape.groups = count_at(map, "groups", 1, 512);
  shape.cables_per_group_pair = count_at(map, "cables_per_group_pair", 1, 1024);
  shape.chassis_cable = link_at(map, "chassis_cable");
  shape.group_cable = link_at(map, "group_cable");
  shape.global_cable = link_at(map, "global_cable");
  const YamlValue routing = map.at("routing", "minimal, valiant or adaptive");
  shape.routing = static_cast<DragonflyShape::Routing>(routing.one_of({"minimal", "valiant", "adaptive"}));
  return shape;
}

TorusShape read_torus(const YamlMap& map) {
  TorusShape shape;
  const YamlValue size = map.at("routers", "three sizes, such as [25, 16, 24]");
  const std::vector<YamlValue> sizes =
      size.is(YamlNode::Kind::sequence) ? size.list() : std::vector<YamlValue>{};
  if (sizes.size() != 3) size.expected("three sizes, such as [25, 16, 24]");
  for (int d = 0; d < 3; ++d) shape.size[d] = static_cast<int>(sizes[d].integer(1, kMaxTorusSize));
  shape.cable = {link_at(map, "x_cable"), link_at(map, "y_cable"), link_at(map, "z_cable")};
  shape.ports_per_router = count_at(map, "nodes_per_router", 1, 64);
  return shape;
}

SitesShape read_sites(const YamlMap& map) {
  return {count_at(map, "sites", 2, 1024), link_at(map, "wan")};
}

FabricShape read_fabric(std::size_t kind, const YamlMap& map) {
  switch (kind) {
    case 1:
      return read_fat_tree(map);
    case 2:
      return read_dragonfly(map);
    case 3:
      return read_torus(map);
    case 4:
      return read_sites(map);
    default:
      return FatTreeShape{};
  }
}

/// Reads `network:`. @param platform  its node was read before
NetworkShape read_network(const YamlValue& value, const Platform& platform) {
  const std::vector<std::string> kinds = {"switch", "fat_tree", "dragonfly", "torus", "sites"};
  const std::size_t kind =
      value.any_map().at("kind", "switch, fat_tree, dragonfly, torus or sites").one_of(kinds);
  const YamlMap map = read_map(value, network_keys(), kinds[kind]);
  NetworkShape network;
  network.nics = count_or(map, "nics", 1, kMaxNics, 1);
  if (const auto striped = map.maybe("striped")) network.striped = striped->boolean();
  if (const auto on = map.maybe("nics_on")) {
    network.nic_on_pcie_switch = on->one_of({"socket", "pcie_switch"}) == 1;
    if (network.nic_on_pcie_switch && platform.node.devices_per_pcie_switch == 0)
      on->refuse("this node has no PCIe switches (node.devices_per_pcie_switch)");
  }
  network.nic = link_of(map);
  network.nic.latency = network.nic.latency / 2;  // a route crosses the cables of two NICs
  network.fabric = read_fabric(kind, map);
  return network;
}

// The greatest number of ports (NICs) of each kind of fabric; INT_MAX for a fabric that grows as needed.
int most_ports(const FatTreeShape&) {
  return INT_MAX;
}
int most_ports(const DragonflyShape& d) {
  return d.ports_per_router * d.routers_per_chassis * d.chassis_per_group * d.groups;
}
int most_ports(const TorusShape& t) {
  return t.ports_per_router * t.size[0] * t.size[1] * t.size[2];
}
int most_ports(const SitesShape&) {
  return INT_MAX;
}

int fabric_capacity(const FabricShape& fabric) {
  return std::visit([](const auto& shape) { return most_ports(shape); }, fabric);
}

constexpr int kMaxDevices = 1 << 20;  // keeps every link id an int

Storage read_storage(const YamlValue& value) {
  Storage storage;
  const std::vector<std::string> kinds = {"shared", "local"};
  const std::size_t kind = value.any_map().at("kind", "shared or local").one_of(kinds);
  const YamlMap map = read_map(value, storage_keys(), kinds[kind]);
  const Link link = link_of(map);
  storage.kind = kind == 0 ? Storage::Kind::shared : Storage::Kind::local;
  storage.bandwidth = storage.per_node = link.bandwidth;
  storage.latency = link.latency;
  if (kind == 0) storage.per_node = sourced(map, "per_node", "a rate such as \"1 GB/s\"").bytes_per_second();
  if (map.has("into_cluster")) storage.into_cluster = sourced(map, "into_cluster", "").bytes_per_second();
  return storage;
}

std::vector<MessageCost> read_costs(const YamlMap& messages, std::string_view key) {
  const YamlValue list = messages.at(key, "a list of {up_to, overhead, bandwidth_factor}");
  std::vector<MessageCost> costs;
  Bytes last{-1};
  for (const YamlValue& item : list.list()) {
    if (last.value == std::numeric_limits<double>::infinity())
      item.refuse("expected no row after the row without up_to");
    const YamlMap map = read_map(item, message_row_keys());
    MessageCost row{{std::numeric_limits<double>::infinity()}, {}, 1};
    if (map.has("up_to")) row.up_to = sourced(map, "up_to", "").bytes();
    if (row.up_to <= last) map.at("up_to").refuse("expected a value above that of the row before");
    row.overhead = sourced(map, "overhead", "a time such as \"1 us\"").seconds();
    row.bandwidth_factor = sourced(map, "bandwidth_factor", "a number such as 0.9").number(1e-6, 1);
    last = row.up_to;
    costs.push_back(row);
  }
  if (last.value != std::numeric_limits<double>::infinity()) list.refuse("expected a last row without up_to");
  return costs;
}

int read_nodes(const YamlMap& map, Platform& platform) {
  const int capacity = fabric_capacity(platform.network.fabric) / platform.network.ports_per_node();
  const int most = std::min(capacity, kMaxDevices / platform.devices_per_node);
  const YamlValue max_nodes = sourced(map, "max_nodes", "the number of nodes of the real machine");
  platform.max_nodes = static_cast<int>(max_nodes.integer(1));
  if (max_nodes.integer(1) > most)
    max_nodes.expected(fmt::format("at most {} nodes, which is the capacity of this fabric", most));
  return count_at(map, "nodes", 1, platform.max_nodes);
}

}  // namespace

Platform read_platform(const YamlValue& value) {
  const YamlMap map = read_map(value, platform_keys());
  Platform platform;
  platform.name = map.at("name", "the platform's name").text();
  platform.source = map.at("source", "where the description comes from").text();
  platform.device_name = map.at("device", "a file of models/devices").text();
  platform.node = read_node(map.at("node", "a mapping"), platform.device_name, platform.devices_per_node);
  platform.network = read_network(map.at("network", "a mapping"), platform);
  platform.nodes = read_nodes(map, platform);
  if (map.has("storage")) platform.storage = read_storage(map.at("storage"));
  const YamlMap messages = read_map(map.at("messages", "a mapping"), messages_keys());
  platform.message_costs = read_costs(messages, "between_nodes");
  platform.local_message_costs = read_costs(messages, "inside_node");
  if (messages.has("programs_inside_node"))
    platform.local_program_costs = read_costs(messages, "programs_inside_node");
  if (map.has("price_per_device_hour"))
    platform.price_per_device_hour = sourced(map, "price_per_device_hour", "").number(0);
  if (map.has("software"))
    platform.software =
        read_software(map.at("software"), platform.device_name, platform.network.nic_on_pcie_switch);
  return platform;
}

}  // namespace stepcast
