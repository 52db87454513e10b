#pragma once

#include <string>
#include <utility>
#include <vector>

#include "platforms/platform.hpp"

namespace stepcast {

/// A three-dimensional torus with dimension-order routes: first along x, then y, then z, each the shorter way
/// round the ring. At equal distance a route from an even coordinate goes up, and one from an odd coordinate
/// down.
class Torus {
 public:
  explicit Torus(const TorusShape& shape);

  int link_count() const { return 2 * static_cast<int>(dimensions_.size()) * vertex_count(); }
  int vertex_count() const { return shape_.size[0] * shape_.size[1] * shape_.size[2]; }
  const Link& link(int id) const { return shape_.cable[dimensions_[id / 2 % dimensions_.size()]]; }
  int edge(int port) const { return port / shape_.ports_per_router; }
  std::pair<int, int> ends(int id) const;
  std::string link_kind(int id) const {
    return std::string(1, "xyz"[dimensions_[id / 2 % dimensions_.size()]]) + " cable";
  }
  std::string vertex_name(int vertex) const;
  /// Appends the links between the routers of two ports, each plus `first_link`.
  void route(int from_port, int to_port, int first_link, std::vector<int>& links) const;

 private:
  int neighbour(int router, int dimension, bool up) const;

  TorusShape shape_;
  std::array<int, 3> stride_;
  std::vector<int> dimensions_;  ///< dimensions with more than one router
};

}  // namespace stepcast
