#pragma once

#include "sim/network.hpp"

namespace stepcast {

/// Seconds that no play of a pattern's messages can fall below, whatever else is under way; of many groups
/// side by side those of the quickest, as if it met no other. Of one group of many ranks, on links as they
/// were built, those of lock step, which are within 1 %.
double shortest_seconds(const Pattern& pattern, Bytes buffer, const LinkBandwidths& bandwidths);

}  // namespace stepcast
