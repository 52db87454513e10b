#pragma once

#include <array>
#include <cmath>
#include <functional>
#include <vector>

#include "core/typed_numbers.hpp"
#include "platforms/topology.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// The endpoints of a collective's ranks, and the network between them.
struct Placement {
  const Platform* platform = nullptr;
  const Topology* topology = nullptr;
  std::vector<int> endpoints;  ///< by rank
  double latency_factor = 1;   ///< multiplies every latency and message overhead
};

/// The load of a link: `weight` bytes cross it for each byte of the largest edge.
struct LinkWeight {
  int link = 0;
  double weight = 0;
};

/// The edges of a round that are inside nodes, or those that are between nodes. The two kinds differ in
/// latency and in the share of the bandwidth that their messages reach. Times per byte refer to the bytes of
/// the largest edge.
struct EdgesLoad {
  bool any = false;                 ///< true if the round has edges of this kind
  std::vector<LinkWeight> links;    ///< sorted by link id
  double share = 0;                 ///< fraction of the buffer that the largest edge moves in a round
  double slowest_alone = 0;         ///< slowest edge with the network to itself [s/B]
  double fastest_alone = INFINITY;  ///< fastest edge with the network to itself [s/B]
  double most_loaded = 0;           ///< most loaded link with all edges active [s/B], see `set_most_loaded`
  double latency = 0;               ///< largest latency of a route [s]
  double least_latency = INFINITY;  ///< smallest latency of a route [s]
  double alone_of_longest = 0;      ///< largest uncontended time per byte at the largest latency [s/B]
  double latency_of_slowest = 0;    ///< largest latency of the edges that are slowest alone [s]
};

enum class EdgeKind { inside, between };
constexpr std::array<EdgeKind, 2> kEdgeKinds{EdgeKind::inside, EdgeKind::between};

inline EdgeKind kind_of(const Edge& edge, const Placement& placement) {
  const auto node = [&](int rank) { return placement.platform->node_of(placement.endpoints[rank]); };
  return node(edge.source) == node(edge.target) ? EdgeKind::inside : EdgeKind::between;
}

/// The load that one round of a phase, with all its edges active, puts on the links.
struct PhaseLoad {
  std::array<EdgesLoad, 2> edges;  ///< by EdgeKind
  int rounds = 1;
  int active = 1;  ///< number of rounds in which an edge sends; less than `rounds` in a pipeline

  EdgesLoad& of(EdgeKind kind) { return edges[ordinal(kind)]; }
  const EdgesLoad& of(EdgeKind kind) const { return edges[ordinal(kind)]; }
};

/// The link loads of every phase of a schedule, without EdgesLoad::most_loaded.
std::vector<PhaseLoad> phase_loads(const Schedule& schedule, const Placement& placement,
                                   const LinkBandwidths& bandwidths);
/// Sets EdgesLoad::most_loaded of all phases.
void set_most_loaded(std::vector<PhaseLoad>& phases, const LinkBandwidths& bandwidths);

/// The cost of a phase's edges of one kind, message costs included.
struct PhaseCost {
  /// Time in addition to the contended transfers: the latency of every round, and the rounds in which a
  /// pipeline fills and drains, when few edges are active and each has its links to itself [s].
  double fixed = 0;
  double latency = 0;  ///< part of `fixed`: latencies and overheads of all rounds [s]
  /// Bytes of the largest edge in all rounds, divided by MessageCost::bandwidth_factor [B].
  double bytes = 0;
  double overhead = 0;  ///< overhead of one message [s]
};
PhaseCost phase_cost(const PhaseLoad& phase, EdgeKind kind, const Placement& placement, Bytes buffer);

/// Duration of a schedule on an otherwise idle network, with rounds in lock step [s]. Needs
/// `set_most_loaded`.
double uncontended_seconds(const std::vector<PhaseLoad>& phases, const Placement& placement, Bytes buffer);

/// Equivalence classes of links. They replace the links of a platform when only known patterns of flows use
/// them.
struct LinkClasses {
  std::vector<BytesPerSecond> bandwidths;  ///< by class, scaled so that weights are whole numbers
  /// Class ids of each pattern; a class of weight k is listed k times.
  std::vector<std::vector<int>> patterns;
};

/// Merges links that every pattern loads equally, and drops links that can never be the first to saturate.
/// Max-min sharing among flows of these patterns is unchanged, up to the rounding of weights to 0.2 % where
/// their ratios are not ratios of small whole numbers. `patterns[i]` holds the link weights of pattern i.
LinkClasses merge_links(const std::vector<const std::vector<LinkWeight>*>& patterns,
                        const std::function<BytesPerSecond(int link)>& bandwidth);

}  // namespace stepcast
