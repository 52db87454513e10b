#pragma once

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

/// One round of a phase seen from the links: all its edges at once.
struct PhaseUsage {
  std::vector<LinkWeight> links;  ///< by link id
  double share = 0;               ///< of the buffer that the largest edge moves in a round
  int rounds = 1;
  int active = 1;              ///< rounds in which an edge sends; fewer than `rounds` in a pipeline
  double alone = 0;            ///< slowest edge with the network to itself [s a byte of the largest edge]
  double slowest = 0;          ///< most loaded link with all edges at once, by `find_slowest` [the same]
  double local_latency = 0;    ///< largest among edges inside nodes [s]
  double network_latency = 0;  ///< largest among edges between nodes [s]
  bool has_local = false, has_network = false;
};

std::vector<PhaseUsage> usage_of(const Schedule& schedule, const Placement& placement);
void find_slowest(std::vector<PhaseUsage>& usage, const LinkBandwidths& bandwidths);

/// Fixed time of a round and the bytes to move, message costs included, for a buffer of `buffer` bytes.
struct RoundCost {
  double latency = 0;  ///< [s]
  double bytes = 0;    ///< of the largest edge, divided by the share of bandwidth that its messages reach
};

/// What lies beside the contended transfers of a phase: the latency of every round, and the rounds in which a
/// pipeline fills and drains, when few edges are at work and each has its links to itself [s].
double fixed_seconds(const PhaseUsage& usage, const RoundCost& cost);

RoundCost round_cost(const PhaseUsage& usage, const Placement& placement, Bytes buffer);

/// Seconds that the schedule takes alone on the network, rounds in lock step, after `find_slowest`.
double uncontended_seconds(const std::vector<PhaseUsage>& usage, const Placement& placement, Bytes buffer);

}  // namespace stepcast
