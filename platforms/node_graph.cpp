#include "platforms/node_graph.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace stepcast {
namespace {

constexpr Bytes kProbe{1 << 20};   // message size that decides between two paths
constexpr Seconds kPerHop{1e-12};  // prefers the path with fewer hops among equal ones

/// Rate of copies through host memory in one direction over that in both at once: 22.5 of 31 GB/s on two RTX
/// 4090, 22.2 of 30 on six, 21.5 of 28.5 on four A100, 10.9 of 15.8 on four A100 on PCIe 3.0, 11 of 18.7 on
/// V100 (p2pBandwidthLatencyTest without peer access; the machines of kStagedCopies, read_node.cpp; the
/// geometric mean). That the copies of a device to all others are no faster than those to one is assumed:
/// TensorFlow issues them in one stream (gpu_device.cc, num_dev_to_dev_copy_streams).
constexpr double kOneWayShare = 0.70;

Link bundle(Link cable, int count) {
  return {count * cable.bandwidth, cable.latency};
}

}  // namespace

NodeGraph::NodeGraph(const Platform& platform)
    : devices_(platform.devices_per_node),
      ports_(platform.network.ports_per_node()),
      sockets_(platform.node.sockets),
      devices_relay_(platform.node.devices_relay),
      peer_name_(platform.device_name.starts_with("mi")    ? "xgmi"
                 : platform.device_name.starts_with("max") ? "xelink"
                                                           : "nvlink"),
      staged_(!platform.node.peer_access) {
  add_vertices(platform);
  add_host_tree(platform);
  add_peers(platform);
  add_network(platform);
  add_staging(platform);
  if (platform.storage.kind == Storage::Kind::local) {
    connect(disk(), first_socket_, {platform.storage.bandwidth, platform.storage.latency});
  }
  find_routes();
}

void NodeGraph::add_vertices(const Platform& platform) {
  const auto add = [this](const std::string& name, int count) {
    const int first = vertex_count();
    for (int i = 0; i < count; ++i) names_.push_back(fmt::format("{} {}", name, i));
    return first;
  };
  add("device", devices_);
  names_.push_back("memory");
  add("NIC", ports_);
  if (platform.storage.kind == Storage::Kind::local) names_.push_back("disk");
  terminals_ = vertex_count();
  first_socket_ = add("socket", sockets_);
  const int per_switch = platform.node.devices_per_pcie_switch;
  first_switch_ = add("PCIe switch", per_switch > 0 ? (devices_ + per_switch - 1) / per_switch : 0);
  peer_switch_ = vertex_count();
  if (platform.node.kind == NodeShape::Kind::nvswitch) names_.push_back("NVSwitch");
  striping_hub_ = vertex_count();
  if (platform.network.striped) names_.push_back("NIC group");
}

void NodeGraph::add_host_tree(const Platform& platform) {
  const NodeShape& node = platform.node;
  const int per_switch = node.devices_per_pcie_switch;
  for (int d = 0; d < devices_; ++d) {
    connect(d, per_switch > 0 ? first_switch_ + d / per_switch : socket_of(d, devices_), node.device,
            node.half_duplex);
  }
  for (int s = first_switch_; s < peer_switch_; ++s) {
    connect(s, socket_of((s - first_switch_) * per_switch, devices_), node.pcie_switch);
  }
  for (int s = 0; s < sockets_; ++s) {
    connect(first_socket_ + s, host(), node.memory);
    for (int t = 0; t < s; ++t)
      connect(first_socket_ + t, first_socket_ + s, node.inter_socket, node.half_duplex_sockets);
  }
}

void NodeGraph::add_peers(const Platform& platform) {
  if (platform.node.kind == NodeShape::Kind::nvswitch) {
    for (int d = 0; d < devices_; ++d) connect(d, peer_switch_, platform.node.peer);
  }
  for (const PeerLink& pair : platform.node.peers)
    connect(pair.a, pair.b, bundle(platform.node.peer, pair.count));
}

void NodeGraph::add_network(const Platform& platform) {
  const NetworkShape& network = platform.network;
  if (network.striped) {
    const Link all = network.port();
    for (int s = 0; s < sockets_; ++s) connect(first_socket_ + s, striping_hub_, {all.bandwidth, Seconds{0}});
    return connect(striping_hub_, nic(0), all);
  }
  for (int k = 0; k < ports_; ++k) {
    const int first_device = k * devices_ / ports_;
    const int at = network.nic_on_pcie_switch
                       ? first_switch_ + first_device / platform.node.devices_per_pcie_switch
                       : socket_of(k, ports_);
    connect(at, nic(k), network.nic);
  }
}

/// All copies through host memory share one link from the memory to itself, and those of a device in one
/// direction a link from the device to itself.
void NodeGraph::add_staging(const Platform& platform) {
  staging_link_ = link_count();
  if (!staged_) return;
  connect(host(), host(), {platform.node.staging, Seconds{0}});
  for (int d = 0; d < devices_; ++d) connect(d, d, {kOneWayShare * platform.node.staging, Seconds{0}});
}

void NodeGraph::connect(int a, int b, Link link, bool half_duplex) {
  links_.insert(links_.end(), {link, link});
  half_duplex_.insert(half_duplex_.end(), 2, half_duplex ? 1 : 0);
  ends_.insert(ends_.end(), {{a, b}, {b, a}});
}

void NodeGraph::find_routes() {
  std::vector<std::vector<int>> from_socket;
  for (int s = 0; staged_ && s < sockets_; ++s) from_socket.push_back(cheapest_entries(first_socket_ + s));
  for (int from = 0; from < terminals_; ++from) {
    const std::vector<int> entry = cheapest_entries(from);
    for (int to = 0; to < terminals_; ++to) {
      route_start_.push_back(route_links_.size());
      if (!staged_ || from >= devices_ || to >= devices_ || !over_host(from, to, entry)) {
        append_path(from, to, entry);
        continue;
      }
      const int socket = socket_of(from, devices_);
      append_path(from, socket, entry);
      const int sends = staging_link_ + 2 + 2 * from, receives = staging_link_ + 2 + 2 * to + 1;
      route_links_.insert(route_links_.end(), {sends, staging_link_, receives});
      append_path(socket, to, from_socket[socket - first_socket_]);
    }
  }
  route_start_.push_back(route_links_.size());
}

/// Appends the links of the path to `to`. @param entry  cheapest_entries(from)
void NodeGraph::append_path(int from, int to, const std::vector<int>& entry) {
  const std::ptrdiff_t start = route_links_.size();
  for (int at = to; at != from; at = ends_[entry[at]].first) route_links_.push_back(shared_id(entry[at]));
  std::reverse(route_links_.begin() + start, route_links_.end());
}

/// Whether the path leads over a socket or a PCIe switch.
bool NodeGraph::over_host(int from, int to, const std::vector<int>& entry) const {
  for (int at = to; at != from; at = ends_[entry[at]].first) {
    if (at >= first_socket_ && at < peer_switch_) return true;
  }
  return false;
}

/// Dijkstra's shortest paths from vertex `from`. Returns, for each vertex, the last link of its best path.
std::vector<int> NodeGraph::cheapest_entries(int from) const {
  std::vector<double> cost(names_.size(), std::numeric_limits<double>::infinity());
  std::vector<bool> done(names_.size());
  std::vector<int> entry(names_.size(), -1);
  cost[from] = 0;
  for (int round = 0; round < vertex_count(); ++round) {
    int nearest = -1;
    for (int v = 0; v < vertex_count(); ++v) {
      if (!done[v] && (nearest < 0 || cost[v] < cost[nearest])) nearest = v;
    }
    done[nearest] = true;
    if (nearest != from && !relays(nearest)) continue;
    for (int id = 0; id < link_count(); ++id) {
      if (ends_[id].first != nearest) continue;
      const double arrival =
          cost[nearest] + (links_[id].latency + kProbe / links_[id].bandwidth + kPerHop).value;
      const int next = ends_[id].second;
      if (arrival >= cost[next]) continue;
      cost[next] = arrival;
      entry[next] = id;
    }
  }
  return entry;
}

std::string NodeGraph::link_name(int id) const {
  const auto [from, to] = ends_[id];
  if (from == to && from < devices_)
    return names_[from] + (id % 2 == 0 ? " sends copies" : " receives copies");
  if (from >= nic(0) && from < nic(ports_)) return names_[from] + " down";
  if (to >= nic(0) && to < nic(ports_)) return names_[to] + " up";
  return names_[from] + " -> " + names_[to];
}

std::string NodeGraph::link_kind(int id) const {
  const auto kind = [this](int vertex) {
    return names_[vertex].substr(0, names_[vertex].find_last_not_of(" 0123456789") + 1);
  };
  const auto [low, high] = std::minmax(ends_[id].first, ends_[id].second);
  if (low == high && low < devices_) return "copies";
  if (low >= nic(0) && low < nic(ports_)) return "NIC";
  return kind(low) + " - " + kind(high);
}

std::string NodeGraph::dotted_link_name(int id) const {
  const auto [from, to] = ends_[id];
  if (from == to && from < devices_) return fmt::format("copies.{}.{}", from, id % 2 == 0 ? "out" : "in");
  const auto is_nic = [this](int vertex) { return vertex >= nic(0) && vertex < nic(ports_); };
  if (is_nic(from)) return fmt::format("nic.{}.down", from - nic(0));
  if (is_nic(to)) return fmt::format("nic.{}.up", to - nic(0));
  const auto label = [this](int vertex) {
    return vertex < devices_        ? std::to_string(vertex)
           : vertex == host()       ? "memory"
           : vertex < first_socket_ ? "disk"
           : vertex < first_switch_ ? fmt::format("socket{}", vertex - first_socket_)
           : vertex < peer_switch_  ? fmt::format("switch{}", vertex - first_switch_)
           : vertex < striping_hub_ ? "nvswitch"
                                    : "nics";
  };
  const auto is_socket = [this](int vertex) { return vertex >= first_socket_ && vertex < first_switch_; };
  const auto is_switch = [this](int vertex) { return vertex >= first_switch_ && vertex < peer_switch_; };
  const auto [low, high] = std::minmax(from, to);
  const std::string kind = low < devices_    ? is_socket(high) || is_switch(high) ? "bus" : peer_name_
                           : !is_socket(low) ? label(low)
                           : is_socket(high) ? "sockets"
                           : is_switch(high) ? "pcie"
                                             : "nic";
  return fmt::format("{}.{}-{}", kind, label(from), label(to));
}

void NodeGraph::route(int from, int to, int first_link, std::vector<int>& links) const {
  const int pair = from * terminals_ + to;
  for (int i = route_start_[pair]; i < route_start_[pair + 1]; ++i)
    links.push_back(first_link + route_links_[i]);
}

}  // namespace stepcast
