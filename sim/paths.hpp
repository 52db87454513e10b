#pragma once

#include <cstdint>
#include <span>
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
    static constexpr std::uint32_t kNear = 2;

    double latency = 0;
    std::int32_t partner = kNone;
    std::int32_t near[kNear]{};  ///< links, if they are so few; else near[0]: the first in links_
    std::uint32_t count_and_local = 0;

    static constexpr std::int32_t kNone = -1;
    std::uint32_t count() const { return count_and_local >> 1U; }
    bool local() const { return (count_and_local & 1U) != 0; }
  };

  /// Of one endpoint, to all others or from all others: by the other's number, at most half full, its size a
  /// power of two. Neighbours lie side by side, as messages mostly go to one after the other.
  struct Table {
    std::vector<Kept> kept;
    std::size_t count = 0;

    Kept& place_of(std::int32_t partner);
    void grow();
  };

  Table& table_of(int from, int to);
  Kept worked_out(int from, int to);

  const Platform& platform_;
  const Topology& topology_;
  const LoneNodes* nodes_ = nullptr;
  std::vector<Table> tables_;  ///< of each endpoint two: to greater ones, from greater ones
  std::vector<int> links_, route_;
};

}  // namespace stepcast
