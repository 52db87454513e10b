#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "platforms/fabrics.hpp"
#include "platforms/node_graph.hpp"
#include "platforms/platform.hpp"

namespace stepcast {

/// A three-dimensional torus with dimension-order routes: first along x, then y, then z, each the shorter way
/// round the ring. At equal distance a route from an even coordinate goes up, and one from an odd coordinate
/// down.
class Torus {
 public:
  explicit Torus(const TorusShape& shape);

  int link_count() const { return 2 * dimensions_.size() * vertex_count(); }
  int vertex_count() const { return shape_.size[0] * shape_.size[1] * shape_.size[2]; }
  const Link& link(int id) const { return shape_.cable[dimensions_[id / 2 % dimensions_.size()]]; }
  int edge(int port) const { return port / shape_.ports_per_router; }
  std::pair<int, int> ends(int id) const;
  std::string link_kind(int id) const {
    return std::string(1, "xyz"[dimensions_[id / 2 % dimensions_.size()]]) + " cable";
  }
  std::string vertex_name(int vertex) const;
  std::string dotted_link_name(int id) const;  ///< such as "router0-1-2.cable.x.up"
  /// Appends the links between the routers of two ports, each plus `first_link`.
  void route(int from_port, int to_port, int first_link, std::vector<int>& links) const;

 private:
  int neighbour(int router, int dimension, bool up) const;

  TorusShape shape_;
  std::array<int, 3> stride_;
  std::vector<int> dimensions_;  ///< dimensions with more than one router
};

/// Sites with equally many nodes. Each site is one non-blocking switch; every two sites are connected by one
/// wide-area link.
class Sites {
 public:
  Sites(const SitesShape& shape, int nodes, int ports_per_node)
      : shape_(shape), ports_((nodes + shape.count - 1) / shape.count * ports_per_node) {}

  int link_count() const { return shape_.count * (shape_.count - 1); }
  int vertex_count() const { return shape_.count; }
  const Link& link(int) const { return shape_.wan; }
  int edge(int port) const { return port / ports_; }
  std::pair<int, int> ends(int id) const {
    const int from = id / (shape_.count - 1), rank = id % (shape_.count - 1);
    return {from, rank < from ? rank : rank + 1};
  }
  std::string link_kind(int) const { return "long link"; }
  std::string vertex_name(int vertex) const { return "site " + std::to_string(vertex); }
  std::string dotted_link_name(int id) const {
    return "site" + std::to_string(ends(id).first) + ".cable." + std::to_string(ends(id).second);
  }
  /// Appends the link between the sites of two ports, if they differ, plus `first_link`.
  void route(int from_port, int to_port, int first_link, std::vector<int>& links) const {
    const int from = edge(from_port), to = edge(to_port);
    if (from != to) links.push_back(first_link + from * (shape_.count - 1) + (to < from ? to : to - 1));
  }

 private:
  SitesShape shape_;
  int ports_;  ///< ports of one site
};

/// All directed links of a platform, and the routes over them. Links and routes are computed on demand, so
/// that a topology of 131,072 devices takes a few kilobytes.
///
/// Link ids are numbered: links inside node 0 (with the cables of its NICs), inside node 1 and so on, then
/// links of the fabric, then links of the shared storage.
class Topology {
 public:
  explicit Topology(const Platform& platform);

  int link_count() const { return first_storage_ + (shared_storage_ ? kStorageLinks + 2 * nodes_ : 0); }
  const Link& link(int id) const;
  std::string link_name(int id) const;
  std::string link_kind(
      int id) const;  ///< the name without numbers: "NIC", "leaf - spine", "global cable" ...
  /// Names for SimGrid, without spaces, each of one link: "node3.nvlink.0-1", "group2.cable.5" ...
  std::string dotted_link_name(int id) const;
  /// "node3.device1", "node3.cpu" or "storage".
  std::string endpoint_name(int endpoint) const;
  int links_per_node() const { return inside_.link_count(); }
  /// Appends the directed links from one endpoint to another; none if they are equal. A pair of endpoints
  /// always has the same route. If the usual one has a dead link, it is the path over live links on which
  /// 1 MiB, sent hop by hop, arrives first; among equal paths a hash of both endpoints chooses. It passes
  /// through no third node. @throws std::invalid_argument for the storage endpoint of a platform without
  /// storage, and if no live path is left
  void route(int from, int to, std::vector<int>& links) const;
  /// Number of routes that a message between two endpoints chooses from by the load of their links: 1 unless
  /// the fabric routes adaptively and the endpoints are in two of its groups.
  unsigned choices(int from, int to) const;
  /// Appends route `choice` of `choices`; choice 0 is that of `route`.
  void route(int from, int to, unsigned choice, std::vector<int>& links) const;
  /// Whether a link connects routers or switches, not nodes or the storage.
  bool in_fabric(int link) const { return link >= first_fabric_ && link < first_storage_; }
  bool connected(int from, int to) const;  ///< Whether `route` finds a path.
  bool has_dead_links() const { return !dead_.empty(); }
  Seconds latency_of(const std::vector<int>& route) const;
  Seconds route_latency(int from, int to) const;

  /// The two vertices that a link connects, for tests and printing. Vertices are numbered: insides of nodes,
  /// fabric, storage.
  std::pair<int, int> link_ends(int id) const;
  /// The vertex of a device, of a host or of the shared storage.
  int endpoint_vertex(int endpoint) const;

 private:
  using Fabric = std::variant<FatTree, Dragonfly, Torus, Sites>;
  static constexpr int kStorageLinks = 4;  ///< storage servers and link into the cluster, each out and in

  /// A device or host: its node, and its vertex in the node graph.
  struct Terminal {
    int node, terminal;
  };

  Terminal terminal_of(int endpoint) const;
  int port_towards(Terminal from, Terminal to) const;  ///< index of the NIC inside its node
  void usual_route(int from, int to, std::vector<int>& links, unsigned choice = 0) const;
  void route_storage(int from, int to, std::vector<int>& links) const;
  bool is_dead(int link) const;
  bool relays(int vertex) const;
  int shared_id(int id) const;
  std::optional<std::vector<int>> detour(int from, int to) const;
  std::vector<int> exits(int vertex, int from, int to) const;
  int terminal_vertex(int endpoint, int other) const;
  int node_vertex(int node, int vertex) const;
  std::string vertex_name(int vertex) const;

  int nodes_, devices_per_node_, ports_;
  NodeGraph inside_;
  Fabric fabric_;
  bool has_storage_, shared_storage_;
  Link storage_, into_cluster_, storage_client_;
  int first_fabric_, first_storage_;  ///< link ids
  int fabric_vertices_ = 0;
  std::vector<int> dead_;                                   ///< ascending
  std::unordered_map<int, std::vector<int>> fabric_exits_;  ///< links out of a vertex, if there are dead ones
};

/// Bandwidths of all links of a platform, after background traffic and overrides. Only links that differ from
/// the platform are stored, because a cluster of 100,000 devices has millions of links.
class LinkBandwidths {
 public:
  LinkBandwidths() = default;  ///< no links
  explicit LinkBandwidths(const Platform& platform) { use_routes_of(platform); }

  int size() const { return cluster_ ? topology().link_count() : 0; }
  BytesPerSecond operator[](int link) const {
    const auto changed = changed_.empty() ? changed_.end() : changed_.find(link);
    return factor_ * (changed == changed_.end() ? topology().link(link).bandwidth : changed->second);
  }
  std::vector<BytesPerSecond> all() const {
    std::vector<BytesPerSecond> bandwidths;
    for (int link = 0; link < size(); ++link) bandwidths.push_back((*this)[link]);
    return bandwidths;
  }

  const Platform& platform() const { return cluster_->platform; }
  const Topology& topology() const { return cluster_->topology; }
  /// Changes the routes to those of a platform that differs only in its dead links.
  void use_routes_of(const Platform& platform) {
    cluster_ = std::make_shared<const Cluster>(Cluster{platform, Topology(platform)});
  }
  bool scaled_evenly() const {
    return changed_.empty();
  }  ///< whether all links have the bandwidth of the platform, times one common factor

  void multiply(int link, double factor) {
    const auto known = changed_.try_emplace(link, topology().link(link).bandwidth).first;
    known->second = factor * known->second;
  }
  void multiply_all(double factor) { factor_ *= factor; }
  double common_factor() const { return factor_; }  ///< of all links

 private:
  struct Cluster {
    Platform platform;
    Topology topology;
  };
  std::shared_ptr<const Cluster> cluster_;  ///< a few kilobytes, shared by all copies
  std::unordered_map<int, BytesPerSecond> changed_;
  double factor_ = 1;
};

}  // namespace stepcast
