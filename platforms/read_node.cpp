#include "platforms/read_parts.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMaxPeers = 1024;
constexpr int kMaxCables = 64;
constexpr int kMaxSockets = 16;

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

/// Keys that only some kinds of node have are unknown keys elsewhere.
std::vector<std::string> keys_of(NodeShape::Kind kind) {
  std::vector<std::string> keys = {
      "kind",        "devices",          "sockets",           "devices_per_pcie_switch",
      "device_link", "pcie_switch_link", "inter_socket_link", "memory",
      "source"};
  if (kind == NodeShape::Kind::nvswitch || kind == NodeShape::Kind::links) keys.push_back("peer_link");
  if (kind == NodeShape::Kind::links) keys.insert(keys.end(), {"peers", "relay"});
  return keys;
}

}  // namespace

NodeShape read_node(const YamlValue& value, int& devices) {
  NodeShape node;
  node.kind = static_cast<NodeShape::Kind>(value.any_map()
                                               .at("kind", "single, pcie, switch or links")
                                               .one_of({"single", "pcie", "switch", "links"}));
  const YamlMap map = value.map(keys_of(node.kind));
  const bool single = node.kind == NodeShape::Kind::single;
  devices = count_or(map, "devices", 1, single ? 1 : kMaxDevicesPerNode, 1);
  node.sockets = count_or(map, "sockets", 1, kMaxSockets, 1);
  node.devices_per_pcie_switch = count_or(map, "devices_per_pcie_switch", 0, devices, 0);
  node.device = link_at(map, "device_link");
  node.memory = link_at(map, "memory");
  if (node.devices_per_pcie_switch > 0) node.pcie_switch = link_at(map, "pcie_switch_link");
  if (node.sockets > 1) node.inter_socket = link_at(map, "inter_socket_link");
  if (node.kind == NodeShape::Kind::nvswitch) node.peer = link_at(map, "peer_link");
  if (node.kind == NodeShape::Kind::links) read_peers(map, devices, node);
  return node;
}

}  // namespace stepcast
