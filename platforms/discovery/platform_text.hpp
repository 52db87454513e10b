#pragma once

#include <optional>
#include <string>

#include "platforms/discovery/discovered.hpp"

namespace stepcast {

/// What a platform file is written from.
struct DiscoveredPlatform {
  std::string name, device;  ///< the platform's name; a name in models/devices/
  int nodes = 1;             ///< where no fabric says it
  std::optional<DiscoveredServer> server;
  std::optional<DiscoveredFabric> fabric;
};

/// `found` with what `lstopo` adds to it: sockets, and the rate of PCIe links.
DiscoveredServer with_hwloc(DiscoveredServer found, const DiscoveredServer& hwloc);

/// The platform file (docs/reference/platforms.md). Each figure has a source: the tool, or "assumed".
std::string platform_file_text(const DiscoveredPlatform& platform);

}  // namespace stepcast
