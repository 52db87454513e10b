#pragma once

#include <string>

#include "platforms/discovery/discovered.hpp"

namespace stepcast {

/// The fabric that `ibnetdiscover` prints: switches, channel adapters (CA) and the cables between their
/// ports. The first word of a CA's description is its node. Switches with CAs are leaves; the others stand
/// one level above the lowest switches that they are connected to.
/// @throws InputError `FILE:LINE: ...`
DiscoveredFabric read_infiniband_fabric(const std::string& text, const std::string& file);

}  // namespace stepcast
