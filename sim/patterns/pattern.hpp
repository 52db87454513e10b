#pragma once

#include <memory>
#include <vector>

#include "platforms/topology.hpp"
#include "sim/network/schedule_link_load.hpp"

namespace stepcast {

/// A schedule placed on a platform, with the links that it loads.
struct Pattern {
  std::shared_ptr<const Schedule> schedule;
  Placement placement;
  std::vector<PhaseLoad> phases;
};

/// True if a collective that shares its links with nothing else proceeds in lock step when it is simulated
/// message by message: all edges of a round have the same latency and get the same bandwidth, and every rank
/// sends and receives equally often. Then the fidelity coupled is exact.
bool in_lock_step(const Pattern& pattern, const LinkBandwidths& bandwidths);

/// True if every rank sends and receives equally often in all rounds, and no round fills or drains a
/// pipeline.
bool all_ranks_take_part(const Schedule& schedule);

/// True if edges inside nodes use links that edges between nodes of the same phase use. `uncontended_seconds`
/// and the bounds do not know how they slow each other down.
bool kinds_share_links(const Pattern& pattern);

/// Lower bound of the duration of a pattern [s]: every link must carry its bytes, an edge that is used in
/// several rounds sends its messages one after the other, and each phase lasts at least as long as its
/// fastest edge. Requires `all_ranks_take_part`.
double least_seconds(const Pattern& pattern, Bytes buffer);

/// What the lower bound of a pattern depends on besides its buffer.
struct PatternShape {
  /// By rank; ranks that exchange messages, directly or through other ranks, share a group.
  std::vector<int> group_of_rank;
  int groups = 0;
  bool all_take_part = false;  ///< all_ranks_take_part
  bool lock_step = false;      ///< in_lock_step
};
PatternShape shape_of(const Pattern& pattern, const LinkBandwidths& bandwidths);

/// Lower bound of the duration of a pattern [s], whatever other traffic there is. For several groups side by
/// side it is the bound of the fastest group, as if groups shared no links.
double lower_bound_seconds(const Pattern& pattern, const PatternShape& shape, Bytes buffer,
                           const LinkBandwidths& bandwidths);

}  // namespace stepcast
