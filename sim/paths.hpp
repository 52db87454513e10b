#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/lone_nodes.hpp"

namespace stepcast {

/// What lies between two endpoints, worked out at their first message and kept for the thousands that follow.
class Paths {
 public:
  struct Path {
    double latency = 0;  ///< of the whole route [s]
    bool local = false;  ///< inside a node
    std::span<const int> links;
  };

  Paths(const Platform& platform, const Topology& topology) : platform_(platform), topology_(topology) {}

  /// Leaves out of all paths the links that never decide.
  void shorten(const LoneNodes& nodes) { nodes_ = &nodes; }

  Path between(int from, int to);  ///< its links lie here until the next call

 private:
  struct Kept {
    double latency;
    std::uint32_t first;  ///< in links_
    std::uint16_t count;
    bool local;
  };

  Kept worked_out(int from, int to);

  const Platform& platform_;
  const Topology& topology_;
  const LoneNodes* nodes_ = nullptr;
  std::unordered_map<std::uint64_t, Kept> known_;
  std::vector<int> links_, route_;
};

}  // namespace stepcast
