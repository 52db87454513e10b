#pragma once

#include "platforms/platform.hpp"

namespace stepcast {

/// A platform of nodes with one device on a given fabric. NICs have 1 GB/s and 1 us, half of it at each end.
inline Platform platform_of(int nodes, FabricShape fabric) {
  Platform platform;
  platform.nodes = platform.max_nodes = nodes;
  platform.node.device = platform.node.memory = {{10e9}, {0}};
  platform.network.nic = {{1e9}, {0.5e-6}};
  platform.network.fabric = std::move(fabric);
  return platform;
}

}  // namespace stepcast
