#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "platforms/topology.hpp"

namespace stepcast {

/// Nodes in which a run uses a single endpoint with one route out and one route in. All links of such a route
/// inside the node carry the same messages, so only the narrowest of them can limit a flow.
class SinglePortNodes {
 public:
  /// @param endpoints  the endpoints that send or receive; duplicates are allowed
  SinglePortNodes(const Platform& platform, const LinkBandwidths& bandwidths,
                  const std::vector<int>& endpoints);

  /// Removes from a route the links inside single-port nodes that are not the narrowest of their node.
  void remove_nonbinding_links(int from, int to, std::vector<int>& route) const;

 private:
  void keep_narrowest(int node, std::size_t first, std::size_t last, std::vector<int>& route) const;

  const Platform& platform_;
  const LinkBandwidths& bandwidths_;
  int links_per_node_;
  std::vector<bool> single_port_;  ///< by node
};

/// Routes between pairs of endpoints, each computed at the first message of its pair and kept for later ones.
class RouteCache {
 public:
  struct Route {
    double latency = 0;  ///< sum over the links of the route [s]
    bool local = false;  ///< true if both endpoints are in one node
    std::span<const int> links;
  };

  RouteCache(const Platform& platform, const Topology& topology) : platform_(platform), topology_(topology) {}

  /// Lets routes computed from now on leave out the links that `nodes` proves redundant.
  void use_single_port_nodes(const SinglePortNodes& nodes) { nodes_ = &nodes; }

  Route between(int from, int to);  ///< `links` of the returned route is valid until the next call.

 private:
  struct Entry {
    static constexpr std::uint32_t kInline = 2;

    double latency = 0;
    std::int32_t partner = kNone;
    /// The links of a route of at most kInline links; of a longer route, [0] is the index of its first link
    /// in `links_`.
    std::int32_t inline_links[kInline]{};
    std::uint32_t count_and_local = 0;

    static constexpr std::int32_t kNone = -1;
    std::uint32_t count() const { return count_and_local >> 1U; }
    bool local() const { return (count_and_local & 1U) != 0; }
  };

  /// Hash table of one endpoint's routes in one direction, keyed by the other endpoint. Its size is a power
  /// of two and at most half of it is used. The hash is the endpoint number itself: programs mostly send to
  /// endpoints in increasing order, whose entries are then adjacent in memory.
  struct Table {
    std::vector<Entry> entries;
    std::size_t count = 0;

    Entry& entry_of(std::int32_t partner);
    void grow();
  };

  Table& table_of(int from, int to);
  Entry computed_route(int from, int to);

  const Platform& platform_;
  const Topology& topology_;
  const SinglePortNodes* nodes_ = nullptr;
  /// Two tables per endpoint: routes to endpoints of greater number, and routes from them.
  std::vector<Table> tables_;
  std::vector<int> links_, route_;
};

}  // namespace stepcast
