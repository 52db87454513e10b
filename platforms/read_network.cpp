#include <algorithm>
#include <cmath>

#include "platforms/platform_readers.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMaxLevels = 7;  // FatTree::route keeps a fixed array
constexpr int kMaxSwitchPorts = 4096;
constexpr int kMaxTreePorts = 1 << 24;
constexpr int kMaxTorusSize = 256;

void check_level(const YamlMap& map, FatTreeLevel& level) {
  if (map.has("up")) {
    plain_value(map, "up").integer(1, level.down);
  } else {
    level.up = std::max<int>(1, std::lround(level.down / level.taper));
  }
}

const Fields<FatTreeLevel>& level_fields() {
  const Form<std::int64_t> ports = integer(1, kMaxSwitchPorts);
  static const Fields<FatTreeLevel> fields =
      Fields<FatTreeLevel>{
          {field("down", &FatTreeLevel::down, ports, required("an integer"),
                 "ports down of a switch: to NICs at the leaves, to switches of the level below at all other "
                 "levels"),
           field("up", &FatTreeLevel::up, ports, otherwise("round(down / taper)"),
                 "cables up, each to a different switch"),
           field("taper", &FatTreeLevel::taper, number(1, kMaxSwitchPorts),
                 required("a number >= 1, such as 2 for 2:1"),
                 "bandwidth of all down ports divided by the bandwidth of all up cables; it sets the exact "
                 "bandwidth of an up cable"),
           field("latency", &FatTreeLevel::latency, duration(), required("a time such as \"0.1 us\""),
                 "latency that each cable adds"),
           source_field<FatTreeLevel>()},
          check_level}
          .sourced(Key::Source::may);
  return fields;
}

void check_levels(const YamlValue& list, const std::vector<FatTreeLevel>& levels) {
  if (levels.size() > kMaxLevels) list.refuse("more than 7 levels below the top");
  int ports = 1;
  for (const FatTreeLevel& level : levels) {
    if (level.down > kMaxTreePorts / ports) list.refuse("more than 16777216 ports");
    ports *= level.down;
  }
}

enum class Fabric { flat, fat_tree, dragonfly, torus, sites };

/// `network:` as written, with the keys of all fabrics.
struct NetworkKeys {
  Fabric fabric{};
  NetworkShape network;
  FatTreeShape fat_tree;
  DragonflyShape dragonfly;
  TorusShape torus;
  SitesShape sites;
  int nodes_per_router = 1;
};

const Fields<NetworkShape>& nic_fields() {
  static const Fields<NetworkShape> fields{
      field("nics", &NetworkShape::nics, integer(1, 64),
            "NICs of a node; device i of D uses NIC i x nics / D, and a host uses the NIC of the device with "
            "which it communicates"),
      field("nics_on", &NetworkShape::nic_on_pcie_switch,
            choice<bool>({{"socket", false}, {"pcie_switch", true}}),
            "where NICs are connected; `pcie_switch` needs `devices_per_pcie_switch`"),
      field("striped", &NetworkShape::striped, boolean(),
            "every message is spread over all NICs, which act as one NIC of nics x bandwidth that every "
            "socket reaches"),
      part(&NetworkShape::nic,
           Fields<Link>{field("bandwidth", &Link::bandwidth, bandwidth(),
                              required("a rate such as \"12 GB/s\""), "effective bandwidth of one NIC"),
                        field("latency", &Link::latency, duration(), required("a time such as \"1 us\""),
                              "latency in one direction between two nodes on one switch; each NIC adds half "
                              "of it")})};
  return fields;
}

const Fields<DragonflyShape>& dragonfly_fields() {
  using Routing = DragonflyShape::Routing;
  const Default number = required("an integer");
  static const Fields<DragonflyShape> fields{
      field("routers_per_chassis", &DragonflyShape::routers_per_chassis, integer(1, 64), number,
            "routers of a chassis, each two of which a chassis cable connects; 16 on Aries"),
      field("chassis_per_group", &DragonflyShape::chassis_per_group, integer(1, 64), number,
            "chassis of a group; group cables connect the routers that are in the same slot of different "
            "chassis; 6 on Aries"),
      field("groups", &DragonflyShape::groups, integer(1, 512), number, "groups of chassis"),
      field("cables_per_group_pair", &DragonflyShape::cables_per_group_pair, integer(1, 1024), number,
            "global cables between each two groups, assigned to the routers in turn"),
      link_field("chassis_cable", &DragonflyShape::chassis_cable, "cable inside a chassis (green on Aries)"),
      link_field("group_cable", &DragonflyShape::group_cable, "cable inside a group (black on Aries)"),
      link_field("global_cable", &DragonflyShape::global_cable, "cable between groups (blue on Aries)"),
      field("routing", &DragonflyShape::routing,
            choice<Routing>({{"minimal", Routing::minimal},
                             {"valiant", Routing::valiant},
                             {"adaptive", Routing::adaptive}}),
            required("minimal, valiant or adaptive"), "the route of a message")};
  return fields;
}

void read_torus_size(const YamlValue& size, TorusShape& torus) {
  const std::vector<YamlValue> sizes =
      size.is(YamlNode::Kind::sequence) ? size.list() : std::vector<YamlValue>{};
  if (sizes.size() != 3) size.expected("three sizes, such as [25, 16, 24]");
  for (int d = 0; d < 3; ++d) torus.size[d] = sizes[d].integer(1, kMaxTorusSize);
}

/// The cable of one dimension of a torus.
Field<TorusShape> cable_field(std::string_view name, std::size_t dimension, std::string_view meaning) {
  const auto read = [dimension](const YamlValue& value, TorusShape& torus) {
    torus.cable[dimension] = mapping<link_fields>().read(value);
  };
  return field<TorusShape>({name, KeyType::mapping, "required", meaning, keys_inside<link_fields>}, read,
                           "{bandwidth: ..., latency: ...}");
}

const Fields<TorusShape>& torus_fields() {
  static const Fields<TorusShape> fields{
      field<TorusShape>(
          {"routers", Allowed(KeyType::integers, {1, 256}), "required", "size of the torus, `[x, y, z]`"},
          read_torus_size, "three sizes, such as [25, 16, 24]"),
      cable_field("x_cable", 0, "cable along x"), cable_field("y_cable", 1, "cable along y"),
      cable_field("z_cable", 2, "cable along z")};
  return fields;
}

const Fields<SitesShape>& sites_fields() {
  static const Fields<SitesShape> fields{
      field("sites", &SitesShape::count, integer(2, 1024), required("an integer"),
            "sites; each is one switch with an equal share of the nodes"),
      link_field("wan", &SitesShape::wan, "link between each two sites")};
  return fields;
}

const Fields<FatTreeShape>& fat_tree_fields() {
  static const Fields<FatTreeShape> fields{
      field("levels", &FatTreeShape::levels, list_of<level_fields>(),
            required("a list of levels from the leaves up, without the top"),
            "levels from the leaves up, without the top; at most 7 levels with at most 2^24 ports"),
      field("rails", &FatTreeShape::rails, boolean(),
            "whether the NICs k of `down` neighbouring nodes share a leaf")};
  return fields;
}

const Fields<NetworkKeys>& network_fields() {
  static const Fields<NetworkKeys> fields =
      Fields<NetworkKeys>{field("kind", &NetworkKeys::fabric,
                                choice<Fabric>({{"switch", Fabric::flat},
                                                {"fat_tree", Fabric::fat_tree},
                                                {"dragonfly", Fabric::dragonfly},
                                                {"torus", Fabric::torus},
                                                {"sites", Fabric::sites}}),
                                required("switch, fat_tree, dragonfly, torus or sites"), "the fabric"),
                          part(&NetworkKeys::network, nic_fields()),
                          source_field<NetworkKeys>(),
                          only_with("fat_tree", part(&NetworkKeys::fat_tree, fat_tree_fields())),
                          only_with("dragonfly, torus",
                                    {field("nodes_per_router", &NetworkKeys::nodes_per_router, integer(1, 64),
                                           required("an integer"), "nodes of a router; 4 on Aries")}),
                          only_with("dragonfly", part(&NetworkKeys::dragonfly, dragonfly_fields())),
                          only_with("torus", part(&NetworkKeys::torus, torus_fields())),
                          only_with("sites", part(&NetworkKeys::sites, sites_fields()))}
          .sourced(Key::Source::may);
  return fields;
}

FabricShape fabric_of(NetworkKeys keys) {
  keys.dragonfly.ports_per_router = keys.torus.ports_per_router = keys.nodes_per_router;
  switch (keys.fabric) {
    case Fabric::flat:
      return FatTreeShape{};
    case Fabric::fat_tree:
      return keys.fat_tree;
    case Fabric::dragonfly:
      return keys.dragonfly;
    case Fabric::torus:
      return keys.torus;
    case Fabric::sites:
      return keys.sites;
  }
  return {};
}

}  // namespace

const Keys& network_keys() {
  return network_fields().keys();
}

NetworkShape read_network(const YamlValue& value, const NodeShape& node) {
  NetworkKeys keys;
  const YamlMap map = read_mapping_of_kind(value, network_fields(), keys);
  if (keys.network.nic_on_pcie_switch && node.devices_per_pcie_switch == 0)
    map.at("nics_on").refuse("this node has no PCIe switches (node.devices_per_pcie_switch)");
  if (keys.fabric == Fabric::fat_tree) check_levels(map.at("levels"), keys.fat_tree.levels);
  NetworkShape network = keys.network;
  network.nic.latency = network.nic.latency / 2;  // a route crosses the cables of two NICs
  network.fabric = fabric_of(keys);
  return network;
}

}  // namespace stepcast
