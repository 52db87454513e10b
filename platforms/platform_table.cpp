#include "platforms/platform_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>

namespace stepcast {
namespace {

int pairs_across_halves(int count) {
  return count / 2 * ((count + 1) / 2);
}

void lower_to(Bisection& best, double bandwidth, const std::string& method) {
  if (bandwidth < best.bandwidth.value) best = {{bandwidth}, method};
}

void apply_fabric_bound(Bisection& best, const FatTreeShape& tree, const NetworkShape& network, int ports) {
  double bandwidth = network.port().bandwidth.value;
  std::int64_t span = 1, cables = 1;  // of one switch group of this level
  for (std::size_t l = 0; l < tree.levels.size(); ++l) {
    const FatTreeLevel& level = tree.levels[l];
    span *= level.down;
    cables *= level.up;
    bandwidth *= level.down / (level.taper * level.up);
    const std::int64_t groups = (ports + span - 1) / span;
    if (groups == 1) return;  // nothing above is needed to join these nodes
    lower_to(best, (groups * cables) * bandwidth / 2,
             fmt::format("half of the cables up from level {}", l + 1));
  }
}

void apply_fabric_bound(Bisection& best, const DragonflyShape& fly, const NetworkShape&, int ports) {
  const int per_chassis = fly.ports_per_router * fly.routers_per_chassis;
  const int per_group = per_chassis * fly.chassis_per_group;
  const int groups = (ports + per_group - 1) / per_group, chassis = (ports + per_chassis - 1) / per_chassis;
  if (groups > 1) {
    lower_to(best, pairs_across_halves(groups) * fly.cables_per_group_pair * fly.global_cable.bandwidth.value,
             "global cables between two pairs_across_halves of the groups");
  } else if (chassis > 1) {
    lower_to(best, pairs_across_halves(chassis) * fly.routers_per_chassis * fly.group_cable.bandwidth.value,
             "group cables between two pairs_across_halves of the chassis");
  } else {
    const int routers = (ports + fly.ports_per_router - 1) / fly.ports_per_router;
    if (routers > 1)
      lower_to(best, pairs_across_halves(routers) * fly.chassis_cable.bandwidth.value,
               "chassis cables between two pairs_across_halves of the routers");
  }
}

void apply_fabric_bound(Bisection& best, const TorusShape& torus, const NetworkShape&, int) {
  const int routers = torus.size[0] * torus.size[1] * torus.size[2];
  for (int d = 0; d < 3; ++d) {
    if (torus.size[d] == 1) continue;
    lower_to(best, 2.0 * routers / torus.size[d] * torus.cable[d].bandwidth.value,
             fmt::format("two cuts across {} of the whole torus", "xyz"[d]));
  }
}

void apply_fabric_bound(Bisection& best, const SitesShape& sites, const NetworkShape&, int) {
  lower_to(best, pairs_across_halves(sites.count) * sites.wan.bandwidth.value,
           "long links between two pairs_across_halves of the sites");
}

}  // namespace

Bisection bisection(const Platform& platform) {
  const int ports = platform.nodes * platform.network.ports_per_node();
  Bisection best{{ports * platform.network.port().bandwidth.value / 2}, "half of all NICs"};
  std::visit([&](const auto& fabric) { apply_fabric_bound(best, fabric, platform.network, ports); },
             platform.network.fabric);
  return best;
}

namespace {

std::string with_prefix(double value, std::string_view unit, const std::array<const char*, 5>& prefixes) {
  std::size_t i = 0;
  for (; value >= 999.95 && i + 1 < prefixes.size(); ++i) value /= 1000;
  return fmt::format("{:.4g} {}{}", value, prefixes[i], unit);
}

std::string shown(BytesPerSecond rate) {
  return with_prefix(rate.value, "B/s", {"", "k", "M", "G", "T"});
}
std::string shown(Seconds time) {
  if (time.value == 0) return "0 us";
  return time.value < 1e-3 ? fmt::format("{:.4g} us", time.value * 1e6)
                           : fmt::format("{:.4g} ms", time.value * 1e3);
}
std::string shown(Bytes size) {
  return std::isinf(size.value) ? "any size" : fmt::format("up to {:.4g} KiB", size.value / 1024);
}

struct LinkKind {
  std::string name;
  Link link;
  std::int64_t count = 0;
};

/// Kinds of links by name, bandwidth and latency, in the order of link ids. Links inside nodes are counted in
/// node 0 and multiplied by the number of nodes.
std::vector<LinkKind> link_kinds(const Topology& topology, int nodes) {
  std::vector<LinkKind> kinds;
  for (int id = 0; id < topology.link_count(); ++id) {
    if (id == topology.links_per_node()) id *= nodes;
    if (id >= topology.link_count()) break;
    const std::string name = topology.link_kind(id);
    const Link& link = topology.link(id);
    const auto same = std::find_if(kinds.begin(), kinds.end(), [&](const LinkKind& kind) {
      return kind.name == name && kind.link.bandwidth == link.bandwidth && kind.link.latency == link.latency;
    });
    LinkKind& kind = same == kinds.end() ? kinds.emplace_back(LinkKind{name, link, 0}) : *same;
    kind.count += id < topology.links_per_node() ? nodes : 1;
  }
  return kinds;
}

std::string costs_text(const char* where, const std::vector<MessageCost>& costs) {
  std::string lines;
  for (const MessageCost& row : costs) {
    lines += fmt::format("{:<12}{}: {} + {:.4g} of the route's bandwidth\n", &row == &costs[0] ? where : "",
                         shown(row.up_to), shown(row.overhead), row.bandwidth_factor);
  }
  return lines;
}

std::string storage_text(const Storage& storage) {
  if (storage.kind == Storage::Kind::none) return "none described";
  if (storage.kind == Storage::Kind::local)
    return fmt::format("a disk a node, {}, {}", shown(storage.bandwidth), shown(storage.latency));
  const std::string way =
      storage.into_cluster.value > 0 ? fmt::format(", {} into the cluster", shown(storage.into_cluster)) : "";
  return fmt::format("shared, {}{}, {} a node, {}", shown(storage.bandwidth), way, shown(storage.per_node),
                     shown(storage.latency));
}

}  // namespace

std::string platform_table(const Platform& platform) {
  const Topology topology(platform);
  const NetworkShape& network = platform.network;
  const char* plural = network.nics == 1 ? "" : "s";
  std::string out = fmt::format("{:<12}{}\n{:<12}{}\n", "platform", platform.name, "source", platform.source);
  out += fmt::format("{:<12}{} x {}, {} a node, {} nodes of at most {}\n", "devices", platform.devices(),
                     platform.device_name, platform.devices_per_node, platform.nodes, platform.max_nodes);
  out += fmt::format("{:<12}{} NIC{} a node{}\n", "network", network.nics, plural,
                     network.striped ? ", striped" : "");
  out += fmt::format("\n{:<40}{:>10}{:>14}{:>12}\n", "links (one way)", "count", "bandwidth", "latency");
  for (const LinkKind& kind : link_kinds(topology, platform.nodes)) {
    out += fmt::format("{:<40}{:>10}{:>14}{:>12}\n", kind.name, kind.count, shown(kind.link.bandwidth),
                       shown(kind.link.latency));
  }
  const Bisection cut = bisection(platform);
  out += fmt::format("\n{:<12}{} one way ({})\n", "bisection", shown(cut.bandwidth), cut.method);
  out += costs_text("messages", platform.message_costs) +
         costs_text("in a node", platform.local_message_costs) +
         costs_text("programs", platform.local_program_costs);
  out += fmt::format("{:<12}{}\n", "storage", storage_text(platform.storage));
  if (platform.software.nccl > 0)
    out += fmt::format("{:<12}{}\n", "software", library_text(platform.software));
  if (platform.price_per_device_hour > 0)
    out += fmt::format("{:<12}{:.4g} US dollars a device-hour\n", "price", platform.price_per_device_hour);
  return out;
}

namespace {

/// "device 3", "host of node 2", "storage".
std::string endpoint_name(const Platform& platform, int endpoint) {
  if (endpoint < platform.devices()) return fmt::format("device {}", endpoint);
  if (endpoint == platform.storage_endpoint()) return "storage";
  return fmt::format("host of node {}", platform.node_of(endpoint));
}

}  // namespace

std::string route_table(const Platform& platform, int from, int to) {
  for (const int endpoint : {from, to}) {
    if (endpoint < 0 || endpoint >= platform.endpoints())
      throw std::invalid_argument(
          fmt::format("endpoint {} is not one of 0 to {}", endpoint, platform.endpoints() - 1));
  }
  const Topology topology(platform);
  std::vector<int> links;
  topology.route(from, to, links);
  std::string out = fmt::format("{} to {}: {} links\n", endpoint_name(platform, from),
                                endpoint_name(platform, to), links.size());
  if (links.empty()) return out;
  Seconds latency;
  int narrowest = links[0];
  for (const int id : links) {
    const Link& link = topology.link(id);
    latency += link.latency;
    if (link.bandwidth < topology.link(narrowest).bandwidth) narrowest = id;
    out += fmt::format("  {:<56}{:>14}{:>12}\n", topology.link_name(id), shown(link.bandwidth),
                       shown(link.latency));
  }
  return out + fmt::format("  {:<56}{:>14}{:>12}\nnarrowest: {}\n", "in all",
                           shown(topology.link(narrowest).bandwidth), shown(latency),
                           topology.link_name(narrowest));
}

std::string bandwidth_doubt(const Platform& platform) {
  constexpr double kFastest = 100;  // GB/s of a NIC of 800 Gbit/s
  const double given = platform.network.nic.bandwidth.value / 1e9;
  if (given <= kFastest) return "";
  return fmt::format(
      "network.bandwidth: {:g} GB/s is more than the fastest NICs have (100 GB/s); did you mean {:g} Gbit/s?",
      given, given);
}

}  // namespace stepcast
