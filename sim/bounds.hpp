#pragma once

#include <cmath>

#include "sim/network.hpp"

namespace stepcast {

/// Whether a collective that meets no other goes in lock step when it is played message by message: all edges
/// of a round are alike, in latency and in what their links leave them, and every rank sends and receives as
/// much. Then the form coupled is exact.
bool in_lock_step(const Pattern& pattern, const LinkBandwidths& bandwidths);

/// Whether every rank sends and receives as often as every other in all rounds, of which none fills or drains
/// a pipeline.
bool all_take_part(const Schedule& schedule);

/// How much longer the slowest edge of a kind and phase takes for its bytes than the quickest, all edges of a
/// round at work; the largest of all phases.
double unevenness(const Pattern& pattern, const LinkBandwidths& bandwidths);

/// Seconds that no play of the messages can fall below: a link needs so long for its bytes, an edge that is
/// used round after round for its messages one by one, and each phase as long as its quickest edge. Holds
/// where all take part.
double least_seconds(const Pattern& pattern, Bytes buffer);

/// Of one round: its quickest edge alone, and what holds up most; 0 where nothing is sent.
struct RoundSeconds {
  double least = INFINITY, most = 0;
};
RoundSeconds round_seconds(const PhaseUsage& usage, const Placement& placement, Bytes buffer);

}  // namespace stepcast
