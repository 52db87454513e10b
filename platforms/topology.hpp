#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "platforms/dragonfly.hpp"
#include "platforms/fat_tree.hpp"
#include "platforms/node_graph.hpp"
#include "platforms/platform.hpp"
#include "platforms/sites.hpp"
#include "platforms/torus.hpp"

namespace stepcast {

/// All directed links of a platform and the routes over them, computed when asked for: a topology of 131,072
/// devices takes a few kilobytes.
///
/// Link ids: those inside node 0 (its NICs' cables included), node 1 ..., then the fabric, then shared
/// storage.
class Topology {
 public:
  explicit Topology(const Platform& platform);

  int link_count() const { return first_storage_ + (shared_storage_ ? kStorageLinks + 2 * nodes_ : 0); }
  const Link& link(int id) const;
  std::string link_name(int id) const;
  std::string link_kind(
      int id) const;  ///< its name without numbers: "NIC", "leaf - spine", "global cable" ...
  int links_per_node() const { return inside_.link_count(); }
  /// Appends the directed links from one endpoint to another; none if they are equal. Always the same for the
  /// same pair. @throws std::invalid_argument for the storage endpoint of a platform without storage
  void route(int from, int to, std::vector<int>& links) const;
  Seconds latency_of(const std::vector<int>& route) const;
  Seconds route_latency(int from, int to) const;

  /// The two vertices that a link joins, for tests and printing. Vertices: insides of nodes, fabric, storage.
  std::pair<int, int> link_ends(int id) const;
  /// Vertex of a device or host, or of the shared storage.
  int endpoint_vertex(int endpoint) const;

 private:
  using Fabric = std::variant<FatTree, Dragonfly, Torus, Sites>;
  static constexpr int kStorageLinks = 4;  ///< servers and way into the cluster, each out and in

  struct Place {
    int node, terminal;
  };

  Place place(int endpoint) const;
  int port_towards(Place from, Place to) const;  ///< number of the NIC inside its node
  void route_storage(int from, int to, std::vector<int>& links) const;
  int node_vertex(int node, int vertex) const;
  std::string vertex_name(int vertex) const;

  int nodes_, devices_per_node_, ports_;
  NodeGraph inside_;
  Fabric fabric_;
  bool has_storage_, shared_storage_;
  Link storage_, into_cluster_, storage_client_;
  int first_fabric_, first_storage_;  ///< link ids
  int fabric_vertices_ = 0;
};

}  // namespace stepcast
