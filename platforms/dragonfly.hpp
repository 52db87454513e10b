#pragma once

#include <string>
#include <utility>
#include <vector>

#include "platforms/platform.hpp"

namespace stepcast {

/// A dragonfly as Cray's Aries is wired: the routers of a chassis are joined all to all, so are the routers
/// of equal slot in the chassis of a group, and every two groups by k global cables, dealt out to the routers
/// in turn.
///
/// Minimal routes: at most two hops in a group (chassis first), a global cable chosen by a hash of both
/// ports, two hops. Valiant routes between two groups pass a third one, chosen by the same hash; inside a
/// group they are minimal. Source: Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly
/// topology", ISCA 2008; Faanes et al., "Cray Cascade: a scalable HPC system based on a dragonfly network",
/// SC 2012.
class Dragonfly {
 public:
  explicit Dragonfly(const DragonflyShape& shape);

  int link_count() const { return first_global_ + shape_.groups * global_per_group_; }
  int vertex_count() const { return shape_.groups * routers_; }
  const Link& link(int id) const;
  int edge(int port) const { return port / shape_.ports_per_router; }
  std::pair<int, int> ends(int id) const;
  std::string link_kind(int id) const {
    return id < first_group_link_ ? "chassis cable" : id < first_global_ ? "group cable" : "global cable";
  }
  std::string vertex_name(int vertex) const;
  /// Appends the links between the routers of two ports, each plus `first_link`.
  void route(int from_port, int to_port, int first_link, std::vector<int>& links) const;

 private:
  void route_in_group(int from, int to, int first_link, std::vector<int>& links) const;
  /// Goes from router `from` to another group over a global cable; returns the router where it arrives.
  int hop(int from, int group, unsigned choice, int first_link, std::vector<int>& links) const;
  int gateway(int group, int other, int cable) const;

  DragonflyShape shape_;
  int slots_, chassis_, routers_;  ///< routers a chassis, chassis a group, routers a group
  int group_links_, global_per_group_;
  int first_group_link_, first_global_;
};

}  // namespace stepcast
