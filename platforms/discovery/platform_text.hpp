#pragma once

#include <optional>
#include <string>

#include "platforms/discovery/discovered.hpp"

namespace stepcast {

/// The content of a platform file that is to be written.
struct DiscoveredPlatform {
  std::string name, device;  ///< the platform's name; a name in models/devices/
  int nodes = 1;             ///< used if there is no fabric
  std::optional<DiscoveredServer> server;
  std::optional<DiscoveredFabric> fabric;
};

/// `found` with the rate of PCIe links, which only `lstopo` prints.
DiscoveredServer with_hwloc(DiscoveredServer found, const DiscoveredServer& hwloc);

/// The platform file (docs/reference/platforms.md). The source of each figure is the tool or
/// "assumed".
std::string platform_file_text(const DiscoveredPlatform& platform);

}  // namespace stepcast
