#include <algorithm>
#include <climits>
#include <cmath>

#include "platforms/read_parts.hpp"

namespace stepcast {
namespace {

constexpr int kMaxNics = 64;
constexpr std::size_t kMaxLevels = 7;  // FatTree::route keeps a fixed array
constexpr int kMaxSwitchPorts = 4096;
constexpr int kMaxTreePorts = 1 << 24;
constexpr int kMaxTorusSize = 256;

FatTreeLevel read_level(const YamlValue& value) {
  const YamlMap map = value.map({"down", "up", "taper", "latency", "source"});
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
  const YamlValue routing = map.at("routing", "minimal or valiant");
  shape.routing = static_cast<DragonflyShape::Routing>(routing.one_of({"minimal", "valiant"}));
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

std::vector<std::string> keys_of(std::size_t kind) {
  static const std::vector<std::string> own[] = {
      {},
      {"levels", "rails"},
      {"nodes_per_router", "routers_per_chassis", "chassis_per_group", "groups", "cables_per_group_pair",
       "chassis_cable", "group_cable", "global_cable", "routing"},
      {"routers", "x_cable", "y_cable", "z_cable", "nodes_per_router"},
      {"sites", "wan"}};
  std::vector<std::string> keys = {"kind", "nics", "nics_on", "striped", "bandwidth", "latency", "source"};
  keys.insert(keys.end(), own[kind].begin(), own[kind].end());
  return keys;
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

}  // namespace

NetworkShape read_network(const YamlValue& value, const Platform& platform) {
  const std::vector<std::string> kinds = {"switch", "fat_tree", "dragonfly", "torus", "sites"};
  const std::size_t kind =
      value.any_map().at("kind", "switch, fat_tree, dragonfly, torus or sites").one_of(kinds);
  const YamlMap map = value.map(keys_of(kind));
  NetworkShape network;
  network.nics = count_or(map, "nics", 1, kMaxNics, 1);
  if (const auto striped = map.maybe("striped")) network.striped = striped->boolean();
  if (const auto on = map.maybe("nics_on")) {
    network.nic_on_pcie_switch = on->one_of({"socket", "pcie_switch"}) == 1;
    if (network.nic_on_pcie_switch && platform.node.devices_per_pcie_switch == 0)
      on->refuse("this node has no PCIe switches (node.devices_per_pcie_switch)");
  }
  network.nic = link_of(map);
  network.nic.latency = network.nic.latency / 2;  // a route crosses two NICs' cables
  network.fabric = read_fabric(kind, map);
  return network;
}

int fabric_capacity(const FabricShape& fabric) {
  if (const auto* d = std::get_if<DragonflyShape>(&fabric))
    return d->ports_per_router * d->routers_per_chassis * d->chassis_per_group * d->groups;
  if (const auto* t = std::get_if<TorusShape>(&fabric))
    return t->ports_per_router * t->size[0] * t->size[1] * t->size[2];
  return INT_MAX;
}

}  // namespace stepcast
