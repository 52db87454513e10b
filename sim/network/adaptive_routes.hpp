#pragma once

#include <span>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/network/max_min_sharing.hpp"

namespace stepcast {

/// Routes that messages choose when they start, by the load of the cables: UGAL with the load of whole routes
/// (UGAL-G), as Aries chooses for each packet between two minimal and two Valiant routes. A message here
/// keeps its route to its end, and a Valiant route's longer latency, below 1 us, is left out. Sources: J.
/// Kim, W. Dally, S. Scott, D. Abts, "Technology-driven, highly-scalable dragonfly topology", ISCA 2008,
/// section 4.2; G. Faanes et al., "Cray Cascade: a scalable HPC system based on a dragonfly network", SC
/// 2012.
class AdaptiveRoutes {
 public:
  AdaptiveRoutes(const LinkBandwidths& bandwidths, const MaxMinSharing& flows)
      : bandwidths_(bandwidths), topology_(bandwidths.topology()), flows_(flows) {}

  /// The route of a message that starts now: of the `Topology::choices` the one with the least
  ///   H x max over its cables of n / b,
  /// H: cables between routers; n: flows on a cable; b: its bandwidth. Of equal ones it is the first, so an
  /// idle network is crossed on minimal routes. `usual` if there is nothing to choose. Valid until the next
  /// call.
  std::span<const int> best(int from, int to, std::span<const int> usual);

 private:
  double load_of(const std::vector<int>& route) const;

  const LinkBandwidths& bandwidths_;
  const Topology& topology_;
  const MaxMinSharing& flows_;
  std::vector<int> best_, tried_;
};

}  // namespace stepcast
