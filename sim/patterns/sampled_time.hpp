#pragma once

#include <optional>

#include "sim/engine/engine.hpp"
#include "sim/network/max_min_sharing.hpp"
#include "sim/patterns/pattern.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

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

/// Simulates collectives one after the other on one clock, each on an otherwise idle network.
class Sampling {
 public:
  /// @param bandwidths  must outlive the object
  Sampling(const LinkBandwidths& bandwidths, LinkSharing sharing);
  Sampling(const Sampling&) = delete;

  /// Simulates a pattern with 8, 16 and 32 of the rounds of its longest phases, and extrapolates with the
  /// time per round of the last 16: rounds of a pipeline and of a ring reach a constant duration. `error` is
  /// the difference to the extrapolation with the rounds before; while it is over 0.1 %, the number of rounds
  /// is doubled.
  /// @param max_work  limit of the cost in the unit of MaxMinSharing::work; SimGrid counts 1 a message
  /// @return nothing if `max_work` does not suffice for three samples
  std::optional<SampledTime> time(const Pattern& pattern, Bytes buffer, double max_work);

 private:
  void start_anew();
  std::optional<double> simulated_seconds(const Schedule& schedule, const Pattern& pattern, Bytes buffer,
                                          double& work_left);

  const LinkBandwidths& bandwidths_;
  LinkSharing sharing_;
  std::optional<Engine> engine_;
  std::optional<MaxMinSharing> links_;  ///< unless SimGrid shares them
};

}  // namespace stepcast
