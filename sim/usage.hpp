#pragma once

#include <array>
#include <cmath>
#include <vector>

#include "core/units.hpp"
#include "platforms/link_bandwidths.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// Where the ranks of a collective sit, and what lies between them.
struct Placement {
  const Platform* platform = nullptr;
  const Topology* topology = nullptr;
  std::vector<int> endpoints;  ///< of each rank
  double latency_factor = 1;   ///< on every latency and message overhead
};

/// `weight` = bytes over the link for each byte of the largest edge.
struct LinkWeight {
  int link = 0;
  double weight = 0;
};

/// Edges of a round that are of one kind: inside nodes, or between nodes. Their latencies, and the share of
/// bandwidth that their messages reach, differ.
struct EdgesUsage {
  bool any = false;
  std::vector<LinkWeight> links;  ///< by link id
  double share = 0;               ///< of the buffer that the largest edge moves in a round
  double alone = 0;               ///< slowest edge with the network to itself [s a byte of the largest edge]
  double fastest = INFINITY;      ///< the same of the fastest edge
  double slowest = 0;             ///< most loaded link, by `find_slowest` [the same]
  double latency = 0;             ///< largest of a route [s]
  double least_latency = INFINITY;
  double alone_of_longest = 0;    ///< `alone` of the edges of the largest latency
  double latency_of_slowest = 0;  ///< of the edges that are slowest alone
};

enum class EdgeKind { inside, between };
constexpr std::array<EdgeKind, 2> kEdgeKinds{EdgeKind::inside, EdgeKind::between};

inline EdgeKind kind_of(const Edge& edge, const Placement& placement) {
  const auto node = [&](int rank) {
    return placement.platform->node_of(placement.endpoints[static_cast<std::size_t>(rank)]);
  };
  return node(edge.source) == node(edge.target) ? EdgeKind::inside : EdgeKind::between;
}

/// One round of a phase seen from the links: all its edges at once.
struct PhaseUsage {
  std::array<EdgesUsage, 2> edges;  ///< by EdgeKind
  int rounds = 1;
  int active = 1;  ///< rounds in which an edge sends; fewer than `rounds` in a pipeline

  EdgesUsage& of(EdgeKind kind) { return edges[static_cast<std::size_t>(kind)]; }
  const EdgesUsage& of(EdgeKind kind) const { return edges[static_cast<std::size_t>(kind)]; }
};

std::vector<PhaseUsage> usage_of(const Schedule& schedule, const Placement& placement,
                                 const LinkBandwidths& bandwidths);
void find_slowest(std::vector<PhaseUsage>& usage, const LinkBandwidths& bandwidths);

/// What the edges of one kind cost, message costs included.
struct PhaseCost {
  /// Beside the contended transfers: the latency of every round, and the rounds in which a pipeline fills and
  /// drains, when few edges are at work and each has its links to itself [s].
  double fixed = 0;
  double latency = 0;   ///< of all rounds, part of `fixed` [s]
  double bytes = 0;     ///< of the largest edge in all rounds, over the share of bandwidth that they reach
  double overhead = 0;  ///< of one message [s]
};
PhaseCost phase_cost(const PhaseUsage& usage, EdgeKind kind, const Placement& placement, Bytes buffer);

/// Seconds that the schedule takes alone on the network, rounds in lock step, after `find_slowest`.
double uncontended_seconds(const std::vector<PhaseUsage>& usage, const Placement& placement, Bytes buffer);

}  // namespace stepcast
