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

}  // namespace stepcast
