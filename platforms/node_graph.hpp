#pragma once

#include <string>
#include <utility>
#include <vector>

#include "platforms/platform.hpp"

namespace stepcast {

/// The inside of one node as a small graph, and the routes between its terminals. All nodes of a platform are
/// equal, so that one table of a few kilobytes serves them all.
///
/// The first vertices are the terminals: devices, host memory, NICs (the vertex of a NIC is the far end of
/// its cable), the local disk. A route takes the path on which 1 MiB, sent hop by hop, arrives first. Only
/// switches and sockets forward traffic, and devices if the node description allows it. Without peer access,
/// a path between devices that leads over the host goes up to the socket of the first, whose memory holds a
/// buffer, and crosses a link that all such copies share, and one of each device for its direction.
class NodeGraph {
 public:
  explicit NodeGraph(const Platform& platform);

  int host() const { return devices_; }
  int nic(int index) const { return devices_ + 1 + index; }
  int disk() const { return devices_ + 1 + ports_; }  ///< exists only with local storage
  int vertex_count() const { return names_.size(); }
  int link_count() const { return links_.size(); }
  const Link& link(int id) const { return links_[id]; }
  std::pair<int, int> ends(int id) const { return ends_[id]; }
  const std::string& vertex_name(int vertex) const { return names_[vertex]; }
  std::string link_name(int id) const;
  std::string link_kind(int id) const;
  /// The name that Topology::dotted_link_name puts after the node's, such as "nvlink.0-1".
  std::string dotted_link_name(int id) const;

  /// Whether routes may lead through the vertex.
  bool relays(int vertex) const { return vertex >= terminals_ || (devices_relay_ && vertex < devices_); }
  /// The id with which a route names the link. Links stand in pairs of directions, which share one id if the
  /// link is half-duplex.
  int shared_id(int id) const { return half_duplex_[id] != 0 ? id & ~1 : id; }
  /// Appends the link ids of the route, each plus `first_link`.
  void route(int from, int to, int first_link, std::vector<int>& links) const;

 private:
  void add_vertices(const Platform& platform);
  void add_host_tree(const Platform& platform);
  void add_peers(const Platform& platform);
  void add_network(const Platform& platform);
  void add_staging(const Platform& platform);
  void connect(int a, int b, Link link, bool half_duplex = false);
  void find_routes();
  std::vector<int> cheapest_entries(int from) const;
  void append_path(int from, int to, const std::vector<int>& entry);
  bool over_host(int from, int to, const std::vector<int>& entry) const;
  int socket_of(int index, int count) const { return first_socket_ + index * sockets_ / count; }

  int devices_, ports_, sockets_, terminals_ = 0;
  bool devices_relay_;
  std::string peer_name_;  ///< of links between devices
  int first_socket_ = 0, first_switch_ = 0, peer_switch_ = 0, striping_hub_ = 0;
  bool staged_;           ///< copies between devices without peer access pass through host memory
  int staging_link_ = 0;  ///< which all of them share; those of the devices follow
  std::vector<std::string> names_;
  std::vector<Link> links_;
  std::vector<char> half_duplex_;  ///< by link: routes use the first direction for both
  std::vector<std::pair<int, int>> ends_;
  /// The route (from, to) is [route_start_[from * terminals_ + to], next start).
  std::vector<int> route_start_, route_links_;
};

}  // namespace stepcast
