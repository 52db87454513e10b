#pragma once

#include <string>
#include <utility>
#include <vector>

#include "platforms/platform.hpp"

namespace stepcast {

/// A fat tree, or one switch (no levels below the top), over the ports (NICs) of all nodes.
///
/// A switch of level l has d_l cables down of bandwidth B_l, and u_l up of B_{l+1} = B_l d_l / (taper_l u_l),
/// each to a switch of its own; B_0 is a NIC's. The top has as many ports as needed. The way up to
/// destination b takes cable (b / (u_0 ... u_{l-1})) mod u_l at level l (D-mod-k), which spreads an
/// all-to-all evenly; the way down is then the only one. Source: Zahavi, "D-Mod-K routing providing
/// non-blocking traffic for shift permutations on real life fat trees", CCIT report 776, Technion, 2010.
class FatTree {
 public:
  FatTree(const FatTreeShape& shape, Link port, int nodes, int ports_per_node);

  int link_count() const { return levels_.back().first_link; }
  int vertex_count() const { return levels_.back().first_switch + levels_.back().width; }
  const Link& link(int id) const { return levels_[level_of_link(id)].up; }
  int edge(int port) const;  ///< the switch that a port's cable ends at
  std::pair<int, int> ends(int id) const;
  std::string vertex_name(int vertex) const;
  std::string link_kind(int id) const;
  /// Appends the links between the edge switches of two ports, each plus `first_link`.
  void route(int from_port, int to_port, int first_link, std::vector<int>& links) const;

 private:
  struct Level {
    int span = 1;          ///< positions below one switch
    int width = 1;         ///< switches that share those positions
    int ups = 0;           ///< cables up from each switch
    int first_switch = 0;  ///< vertex number
    int first_link = 0;
    Link up;
  };

  int position(int port) const;
  int level_of_link(int id) const;

  std::vector<Level> levels_;            ///< from the leaves to the top
  int ports_per_node_, nodes_per_leaf_;  ///< nodes_per_leaf_ 0: no rails
};

}  // namespace stepcast
