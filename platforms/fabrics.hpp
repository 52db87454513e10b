#pragma once

#include <string>
#include <utility>
#include <vector>

#include "platforms/platform.hpp"

namespace stepcast {

/// A fat tree over the ports (NICs) of all nodes. Without levels below the top it is a single switch.
///
/// A switch of level l has d_l cables down of bandwidth B_l, and u_l up of B_{l+1} = B_l d_l / (taper_l u_l),
/// each to a different switch; B_0 is the bandwidth of a NIC. The top level has as many ports as needed. The
/// route up to destination b takes cable (b / (u_0 ... u_{l-1})) mod u_l at level l (D-mod-k), which spreads
/// an all-to-all evenly. The route down is then unique. Source: Zahavi, "D-Mod-K routing providing
/// non-blocking traffic for shift permutations on real life fat trees", CCIT report 776, Technion, 2010.
class FatTree {
 public:
  FatTree(const FatTreeShape& shape, Link port, int nodes, int ports_per_node);

  int link_count() const { return levels_.back().first_link; }
  int vertex_count() const { return levels_.back().first_switch + levels_.back().width; }
  const Link& link(int id) const { return levels_[level_of_link(id)].up; }
  int edge(int port) const;                ///< the leaf switch that the cable of a port ends at
  std::pair<int, int> ends(int id) const;  ///< the switches that a link leads from and to
  std::string vertex_name(int vertex) const;
  std::string link_kind(int id) const;
  std::string dotted_link_name(int id) const;  ///< such as "leaf3.cable.0.up"
  /// Appends the links between the edge switches of two ports, each plus `first_link`.
  void route(int from_port, int to_port, int first_link, std::vector<int>& links) const;

 private:
  /// Switches of one level. A group is the set of switches that serve the same positions.
  struct Level {
    int span = 1;          ///< positions (ports in leaf order) below one switch
    int width = 1;         ///< switches in a group
    int ups = 0;           ///< cables up from each switch
    int first_switch = 0;  ///< vertex number of the first switch of the level
    int first_link = 0;    ///< number of the first link up from this level
    Link up;               ///< one cable up
  };

  /// Position of a port in the order of the leaves; with rails, NICs of equal index share a leaf.
  int position(int port) const;
  int level_of_link(int id) const;

  std::vector<Level> levels_;            ///< from the leaves to the top
  int ports_per_node_, nodes_per_leaf_;  ///< nodes_per_leaf_: with rails, nodes that share the leaves; else 0
};

/// A dragonfly network as wired by Cray Aries. The routers of a chassis are connected all to all, and so are
/// the routers of equal slot in the chassis of a group. Every two groups are connected by k global cables,
/// which are assigned to the routers in turn.
///
/// A minimal route takes at most two hops in the first group (inside the chassis first), a global cable that
/// is chosen by a hash of both ports, and at most two hops in the second group. A Valiant route between two
/// groups passes through a third one, which is chosen by the same hash; inside a group Valiant routes are
/// minimal. With adaptive routing a message between groups has, as on Aries, two minimal and two Valiant
/// routes to choose from. Source: Kim, Dally, Scott and Abts, "Technology-driven, highly-scalable dragonfly
/// topology", ISCA 2008; Faanes et al., "Cray Cascade: a scalable HPC system based on a dragonfly network",
/// SC 2012.
class Dragonfly {
 public:
  explicit Dragonfly(const DragonflyShape& shape);

  int link_count() const { return first_global_ + shape_.groups * global_per_group_; }
  int vertex_count() const { return shape_.groups * routers_; }
  const Link& link(int id) const;
  /// The router that the cable of a port ends at.
  int edge(int port) const { return port / shape_.ports_per_router; }
  /// The routers that a link leads from and to.
  std::pair<int, int> ends(int id) const;
  std::string link_kind(int id) const {
    return id < first_group_link_ ? "chassis cable" : id < first_global_ ? "group cable" : "global cable";
  }
  std::string vertex_name(int vertex) const;
  /// Such as "group2.chassis0.cable.0-5" between two slots of a chassis, "group2.slot0.cable.0-5" between two
  /// chassis of a group, and "group2.cable.5" to another group.
  std::string dotted_link_name(int id) const;
  /// Appends the links between the routers of two ports, each plus `first_link`.
  void route(int from_port, int to_port, int first_link, std::vector<int>& links) const {
    route(from_port, to_port, first_link, links, 0);
  }
  /// The same on route `choice` of `choices`. Choice 0 is the route of messages that do not choose.
  void route(int from_port, int to_port, int first_link, std::vector<int>& links, unsigned choice) const;
  /// Number of routes that a message between two ports chooses from: 1 unless routing is adaptive.
  unsigned choices(int from_port, int to_port) const;

 private:
  static constexpr unsigned kMinimalChoices = 2, kValiantChoices = 2;

  void route_in_group(int from, int to, int first_link, std::vector<int>& links) const;
  /// Appends the links from router `from` to another group, over a global cable. Returns the router that the
  /// cable leads to.
  int cross_to_group(int from, int group, unsigned choice, int first_link, std::vector<int>& links) const;
  /// The router of `group` at which its global cable number `cable` to group `other` ends.
  int gateway(int group, int other, int cable) const;

  DragonflyShape shape_;
  int slots_, chassis_, routers_;  ///< routers per chassis, chassis per group, routers per group
  int group_links_, global_per_group_;
  int first_group_link_, first_global_;
};

}  // namespace stepcast
