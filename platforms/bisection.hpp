#pragma once

#include <string>

#include "platforms/platform.hpp"

namespace stepcast {

/// Bandwidth, one way, from one half of the nodes to the other half.
struct Bisection {
  BytesPerSecond bandwidth;
  std::string method;  ///< what bounds it, and how it was counted
};

/// Counts the cables between the two halves by the fabric's own formula (docs/platforms.md); half of all NICs
/// bounds it too. No flow is computed: routes may reach less.
Bisection bisection(const Platform& platform);

}  // namespace stepcast
