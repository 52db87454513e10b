#pragma once

#include "sim/network.hpp"

namespace stepcast {

/// Seconds that a collective takes by every message, with the network to itself. One a process.
inline double played_alone(SimNetwork& network, int pattern, Bytes buffer) {
  network.start();
  double end = 0;
  network.play(pattern, buffer, 1, [&] { end = network.engine().now(); });
  network.engine().run();
  return end;
}

}  // namespace stepcast
