#include <optional>

#include "platforms/platform_readers.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMaxPeers = 1024;
constexpr int kMaxCables = 64;
constexpr int kMaxDevicesPerNode = 256;

/// Rate of all copies of a node through host memory over that of a device's link: both ways together between
/// two devices, by p2pBandwidthLatencyTest without peer access. On PCIe 4.0 x16 (24 GB/s) 21 on eight RTX
/// 4090 (rtx4090-8-one-process, validate/data/nccl_tests.yaml), 31 on two (D. Kinghorn, Threadripper PRO), 28
/// on six (NVIDIA/nccl issue 814), 26 on three (tinygrad/open-gpu-kernel-modules issue 6), 28 on four A100;
/// on PCIe 3.0 x16 (12 GB/s) 16 on four V100, 15 on four A100, 7.6 on eight RTX 3090 (NVIDIA/nccl issue
/// 1127): the geometric mean, where pairs differ of their middle. That more pairs at once are no faster is
/// assumed.
constexpr double kStagedCopies = 1.07;

/// `node:` as written.
struct NodeKeys {
  NodeShape shape;
  int devices = 1;
  std::optional<bool> peer_access;
  std::optional<BytesPerSecond> staging;
};

PeerLink read_peer(const YamlValue& value, int devices) {
  const char* form = "[device, device] or [device, device, cables]";
  if (!value.is(YamlNode::Kind::sequence)) value.expected(form);
  const std::vector<YamlValue> items = value.list();
  if (items.size() != 2 && items.size() != 3) value.expected(form);
  PeerLink peer;
  peer.a = items[0].integer(0, devices - 1);
  peer.b = items[1].integer(0, devices - 1);
  if (items.size() == 3) peer.count = items[2].integer(1, kMaxCables);
  if (peer.a == peer.b) value.refuse("a device cannot be linked to itself");
  return peer;
}

/// @param node  with its devices
void read_peers(const YamlValue& list, NodeKeys& node) {
  for (const YamlValue& item : list.list()) {
    if (node.shape.peers.size() == kMaxPeers) list.refuse("more than 1024 pairs");
    node.shape.peers.push_back(read_peer(item, node.devices));
  }
}

void check_node(const YamlMap& map, NodeKeys& node) {
  NodeShape& shape = node.shape;
  if (shape.kind == NodeShape::Kind::single && map.has("devices")) plain_value(map, "devices").integer(1, 1);
  if (map.has("devices_per_pcie_switch"))
    plain_value(map, "devices_per_pcie_switch").integer(0, node.devices);
  if (shape.devices_per_pcie_switch > 0) map.at("pcie_switch_link", "{bandwidth: ..., latency: ...}");
  if (shape.sockets > 1) map.at("inter_socket_link", "{bandwidth: ..., latency: ...}");
}

const Fields<NodeShape>& kind_fields() {
  using Kind = NodeShape::Kind;
  static const Fields<NodeShape> fields{field("kind", &NodeShape::kind,
                                              choice<Kind>({{"single", Kind::single},
                                                            {"pcie", Kind::pcie},
                                                            {"switch", Kind::nvswitch},
                                                            {"links", Kind::links}}),
                                              required("single, pcie, switch or links"),
                                              "how the devices of a node are connected")};
  return fields;
}

/// A link that only some nodes have.
Field<NodeShape> optional_link(std::string_view name, Link NodeShape::*member,
                               std::string_view otherwise_text, std::string_view meaning) {
  return field(name, member, mapping<link_fields>(), otherwise(otherwise_text), meaning);
}

const Fields<NodeShape>& shape_fields() {
  const Form<bool> duplex = choice<bool>({{"full", false}, {"half", true}});
  static const Fields<NodeShape> fields{
      field("sockets", &NodeShape::sockets, integer(1, 16),
            "sockets of a node; devices and NICs are distributed over them evenly, in order"),
      field("devices_per_pcie_switch", &NodeShape::devices_per_pcie_switch, integer(0, kMaxDevicesPerNode),
            "consecutive devices that share a PCIe switch; 0: devices are connected to their socket"),
      link_field("device_link", &NodeShape::device,
                 "from a device to its PCIe switch or socket: PCIe, NVLink to the CPU, or for a CPU core its "
                 "path to memory"),
      field("device_link_duplex", &NodeShape::half_duplex, duplex,
            "`half`: both directions of a `device_link` share its bandwidth, for example if a core copies "
            "everything that it sends and receives"),
      optional_link("pcie_switch_link", &NodeShape::pcie_switch, "required with PCIe switches",
                    "from a PCIe switch to its socket"),
      optional_link("inter_socket_link", &NodeShape::inter_socket, "required with several sockets",
                    "between each two sockets"),
      field("inter_socket_duplex", &NodeShape::half_duplex_sockets, duplex,
            "`half`: both directions of an `inter_socket_link` share its bandwidth, for example if copies "
            "between GPUs without peer access are staged in host memory"),
      link_field("memory", &NodeShape::memory, "from a socket to the host's memory"),
      source_field<NodeShape>()};
  return fields;
}

Field<NodeKeys> in_shape(Field<NodeShape> one) {
  return part(&NodeKeys::shape, Fields<NodeShape>{std::move(one)}).front();
}

const Fields<NodeKeys>& node_fields() {
  static const Fields<NodeKeys> fields =
      Fields<NodeKeys>{
          {part(&NodeKeys::shape, kind_fields()),
           field("devices", &NodeKeys::devices, integer(1, kMaxDevicesPerNode),
                 "devices of a node; 1 for `single`"),
           part(&NodeKeys::shape, shape_fields()),
           only_with(
               "pcie, switch, links",
               {field("peer_access", &NodeKeys::peer_access, boolean(), otherwise("that of the device"),
                      "whether devices without a `peer_link` reach each other's memory; `false`: "
                      "copies pass through host memory"),
                field("staging", &NodeKeys::staging, bandwidth(), otherwise("1.07 x `device_link`"),
                      "rate of all such copies of a node (of a device, 70 % of it each way), and of NCCL's "
                      "if it is given; only with "
                      "`peer_access: false`")}),
           only_with(
               "switch, links",
               {in_shape(link_field("peer_link", &NodeShape::peer,
                                    "`switch`: a device's port at the NVSwitch; `links`: one NVLink"))}),
           only_with(
               "links",
               {field<NodeKeys>({"peers", KeyType::lists, "required",
                                 "linked pairs of devices, `[a, b]` or `[a, b, cables]`, at most 1,024; "
                                 "the bandwidths of up to 64 parallel cables add up"},
                                read_peers, "a list of [device, device]"),
                in_shape(field("relay", &NodeShape::devices_relay,
                               choice<bool>({{"host", false}, {"devices", true}}),
                               "`devices`: traffic may pass through a third device; `host`: only "
                               "through the host"))})},
          check_node}
          .sourced(Key::Source::may);
  return fields;
}

}  // namespace

const Keys& node_keys() {
  return node_fields().keys();
}

NodeDescription read_node(const YamlValue& value, bool peer_access) {
  NodeKeys node;
  const YamlMap map = read_mapping_of_kind(value, node_fields(), node);
  NodeShape& shape = node.shape;
  if (shape.devices_per_pcie_switch == 0) shape.pcie_switch = {};
  if (shape.sockets == 1) shape.inter_socket = {};
  if (shape.kind == NodeShape::Kind::single) return {shape, node.devices};
  shape.peer_access = node.peer_access.value_or(peer_access);
  if (map.has("staging") && shape.peer_access)
    map.at("staging").refuse("only valid with peer_access: false, because other copies are not staged");
  if (!shape.peer_access) shape.staging = node.staging.value_or(kStagedCopies * shape.device.bandwidth);
  shape.staging_given = map.has("staging");
  return {shape, node.devices};
}

}  // namespace stepcast
