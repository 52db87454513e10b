#pragma once

#include <memory>
#include <optional>
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

/// Duration of a collective that shares its links with nothing else, extrapolated from some of its messages.
struct SampledTime {
  double seconds = 0;
  double error = 0;     ///< estimated relative error; 0 if every message was simulated
  double messages = 0;  ///< number of messages that were simulated
  double work = 0;      ///< cost of their simulation in the unit of MaxMinSharing::work
};

/// Number of messages whose simulation takes a negligible time.
constexpr double kCheapSampleMessages = 3e4;

/// Number of messages of the first three samples, or of the whole schedule if it is simulated without
/// sampling.
double sampled_messages(const Schedule& schedule);

/// Simulates a pattern with 8, 16 and 32 of the rounds of its longest phases, and extrapolates with the time
/// per round of the last 16: rounds of a pipeline and of a ring reach a constant duration. `error` is the
/// difference to the extrapolation with the rounds before; while it is over 0.1 %, the number of rounds is
/// doubled.
/// @param max_work  limit of the cost in the unit of MaxMinSharing::work
/// @return nothing if `max_work` does not suffice for three samples
std::optional<SampledTime> sampled_time(const Pattern& pattern, Bytes buffer,
                                        const LinkBandwidths& bandwidths, double max_work);

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

/// Ratio of the times that the slowest and the fastest edge of a phase and kind take for their bytes while
/// all edges of a round are active; the largest ratio of all phases.
double unevenness(const Pattern& pattern, const LinkBandwidths& bandwidths);

/// Lower bound of the duration of a pattern [s]: every link must carry its bytes, an edge that is used in
/// several rounds sends its messages one after the other, and each phase lasts at least as long as its
/// fastest edge. Requires `all_ranks_take_part`.
double least_seconds(const Pattern& pattern, Bytes buffer);

/// Lower bound of the duration of a pattern [s], whatever other traffic there is. For several groups side by
/// side it is the bound of the fastest group, as if groups shared no links. For a single large group on
/// unmodified links, it is the duration if all ranks enter each round together, which is within 1 % of the
/// exact duration.
double lower_bound_seconds(const Pattern& pattern, Bytes buffer, const LinkBandwidths& bandwidths);

}  // namespace stepcast
