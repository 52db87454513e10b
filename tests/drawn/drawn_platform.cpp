#include "tests/drawn/drawn_platform.hpp"

namespace stepcast::drawn {
namespace {

std::string bandwidth(double least, double most, Draws& draws) {
  return short_text(draws.log_between(least, most)) + " GB/s";
}

std::string microseconds(double least, double most, Draws& draws) {
  return short_text(draws.log_between(least, most)) + " us";
}

/// A link of `least` to `most` GB/s.
std::string link(double least, double most, Draws& draws) {
  return joined(
      {"{bandwidth: ", bandwidth(least, most, draws), ", latency: ", microseconds(0.05, 5, draws), "}"});
}

/// Pairs of devices with cables: a ring, or every two.
std::string peers(int devices, Draws& draws) {
  std::string text;
  const bool all = draws.chance(0.5);
  for (int a = 0; a < devices; ++a) {
    for (int b = a + 1; b < devices; ++b) {
      if (all || b == a + 1 || (a == 0 && b == devices - 1))
        text += fmt::format("{}[{}, {}, {}]", text.empty() ? "" : ", ", a, b, draws.one_of({1, 1, 2}));
    }
  }
  return text;
}

/// The inside of a node, without its braces.
std::string node_text(int devices, Draws& draws) {
  const std::string kind = devices == 1 ? "single" : draws.one_of({"pcie", "switch", "links"});
  std::string text =
      joined({"kind: ", kind, ", device_link: ", link(5, 60, draws), ", memory: ", link(20, 200, draws)});
  if (devices > 1) text += fmt::format(", devices: {}", devices);
  const int sockets = devices % 2 == 0 ? draws.one_of({1, 2}) : 1;
  if (sockets == 2) text += ", sockets: 2, inter_socket_link: " + link(5, 40, draws);
  if (devices / sockets % 2 == 0 && draws.chance(0.3))
    text += ", devices_per_pcie_switch: 2, pcie_switch_link: " + link(5, 30, draws);
  if (draws.chance(0.2)) text += ", device_link_duplex: half";
  if (kind == "switch" || kind == "links") text += ", peer_link: " + link(10, 400, draws);
  if (kind == "links")
    text += joined({", peers: [", peers(devices, draws), "], relay: ", draws.one_of({"host", "devices"})});
  return text;
}

std::string fat_tree(int nics, Draws& draws) {
  std::string text = fmt::format("kind: fat_tree, levels: [{{down: {}", nics * draws.one_of({2, 4, 8}));
  text += fmt::format(", taper: {}, latency: 0.3 us}}", draws.one_of({1, 1, 2, 4}));
  if (draws.chance(0.4))
    text += fmt::format(", {{down: 4, taper: {}, latency: 0.7 us}}", draws.one_of({1, 2}));
  return text + "]";
}

/// A fabric with places for `nodes` nodes of `nics` NICs each, without its braces.
std::string fabric(int nodes, int nics, Draws& draws) {
  const std::string kind =
      draws.one_of({"switch", "switch", "fat_tree", "fat_tree", "torus", "dragonfly", "sites"});
  int side = 1;
  while (side * side * side < nodes) ++side;
  if (kind == "fat_tree") return fat_tree(nics, draws);
  if (kind == "sites" && nodes % 2 == 0) return "kind: sites, sites: 2, wan: " + link(0.5, 10, draws);
  if (kind == "torus")
    return joined({fmt::format("kind: torus, nodes_per_router: 1, routers: [{0}, {0}, {0}]", side),
                   ", x_cable: ", link(1, 20, draws), ", y_cable: ", link(1, 20, draws),
                   ", z_cable: ", link(1, 20, draws)});
  if (kind == "dragonfly")
    return joined({fmt::format("kind: dragonfly, nodes_per_router: 1, routers_per_chassis: {}, "
                               "chassis_per_group: 2, groups: {}",
                               side, side * side / 2 + 1),
                   ", cables_per_group_pair: ", draws.one_of({"1", "2", "4"}),
                   ", chassis_cable: ", link(4, 20, draws), ", group_cable: ", link(4, 20, draws),
                   ", global_cable: ", link(4, 20, draws),
                   ", routing: ", draws.one_of({"minimal", "valiant"})});
  return "kind: switch";
}

/// The cost of a message, without its braces.
std::string cost(Draws& draws) {
  return joined({"overhead: ", microseconds(0.1, 10, draws),
                 ", bandwidth_factor: ", short_text(draws.between(0.3, 1))});
}

/// Costs of growing messages.
std::string costs(Draws& draws) {
  std::string rows;
  const int small_rows = draws.one_of({0, 1, 2});
  for (int row = 0; row < small_rows; ++row)
    rows += fmt::format("{{up_to: {} KiB, {}}}, ", row == 0 ? 8 : 256, cost(draws));
  return "[" + rows + "{" + cost(draws) + "}]";
}

/// Storage, with the comma before it; empty for none.
std::string storage(Draws& draws) {
  const std::string kind = draws.one_of({"none", "local", "shared"});
  if (kind == "none") return "";
  std::string text =
      joined({", storage: {kind: ", kind, ", latency: 200 us, bandwidth: ", bandwidth(0.5, 20, draws)});
  if (kind == "shared") text += ", per_node: " + bandwidth(0.5, 5, draws);
  return text + "}";
}

std::string network_text(int nodes, int devices_per_node, Draws& draws) {
  const int nics = devices_per_node % 2 == 0 ? draws.one_of({1, 1, 2}) : 1;
  std::string text =
      joined({fabric(nodes, nics, draws), fmt::format(", nics: {}", nics),
              ", bandwidth: ", bandwidth(0.5, 25, draws), ", latency: ", microseconds(0.2, 30, draws)});
  if (nics > 1 && draws.chance(0.3)) text += ", striped: true";
  return text;
}

}  // namespace

std::string drawn_platform(int devices, Draws& draws) {
  const int per_node = draws.one_of({1, 1, 2, 4, 4, 8, 6, 3});
  const int nodes = (devices + per_node - 1) / per_node;
  const std::string device =
      draws.one_of({"a100-40gb", "h100-sxm", "v100-sxm2-16gb", "p100-pcie", "cpu-core"});
  std::string text = joined(
      {"{name: drawn, source: drawn, device: ", device, fmt::format(", nodes: {0}, max_nodes: {0}", nodes),
       ", node: {", node_text(per_node, draws), "}, network: {", network_text(nodes, per_node, draws),
       "}, messages: {between_nodes: ", costs(draws), ", inside_node: ", costs(draws)});
  if (draws.chance(0.2)) text += ", programs_inside_node: " + costs(draws);
  text += "}" + storage(draws);
  if (device != "cpu-core" && draws.chance(0.25))
    text += joined({", software: {nccl: \"", draws.one_of({"2.4", "2.8", "2.12", "2.18"}), "\"}"});
  return text + "}";
}

}  // namespace stepcast::drawn
