#include "strategies/arithmetic/line_search.hpp"

#include <cmath>

namespace stepcast {

bool LineSearch::accepts(double derivative) {
  constexpr double kDelta = 0.1, kSigma = 0.9;
  const bool too_long = !std::isfinite(derivative) || derivative > (2 * kDelta - 1) * slope;
  const bool too_short = !too_long && derivative < kSigma * slope;
  if ((!too_long && !too_short) || trials == kMaxRefused) return true;
  ++trials;
  (too_long ? high : low) = length;
  length = std::isfinite(high) ? (low + high) / 2 : 2 * length;
  return false;
}

}  // namespace stepcast
