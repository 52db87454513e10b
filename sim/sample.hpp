#pragma once

#include <optional>

#include "sim/network.hpp"

namespace stepcast {

/// Seconds of a collective that meets no other, from few of its messages.
struct Sample {
  double seconds = 0;
  double error = 0;     ///< relative, about; 0: every message was played
  double messages = 0;  ///< that were played
  double work = 0;      ///< what that took (MaxMinLinks)
};

/// Messages of samples that take next to no time.
constexpr double kFewSampled = 3e4;

/// Messages of three samples, or of a schedule that is played whole.
double sampled_messages(const Schedule& schedule);

/// Plays a pattern with 8, 16 and 32 of the rounds of its longest phases, and goes on from there at the pace
/// of the last 16: a pipeline and a ring settle into a pace. `error` is what the pace of the rounds before
/// would have made of it; as long as it is over 0.1 %, twice as many rounds are played.
/// @param most  work; none if that is not enough for three samples
std::optional<Sample> sample(const Pattern& pattern, Bytes buffer, const LinkBandwidths& bandwidths,
                             double most);

}  // namespace stepcast
