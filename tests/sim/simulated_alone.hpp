#pragma once

#include "sim/patterns/sim_network.hpp"

namespace stepcast {

/// Duration of a collective with every message simulated, on an otherwise idle network [s]. One call per
/// process.
inline double simulated_alone(const NetworkPatterns& patterns, LinkSharing sharing, PatternId pattern,
                              Bytes buffer) {
  SimNetwork network(patterns, {Fidelity::message, sharing});
  double end = 0;
  network.start_pattern(pattern, buffer, 1, [&] { end = network.engine().now(); });
  network.engine().run();
  return end;
}

}  // namespace stepcast
