#pragma once

#include <string>

#include "platforms/discovery/discovered.hpp"

namespace stepcast {

/// The inside of a server from the XML that `lstopo FILE.xml` writes, read by hwloc: GPUs, InfiniBand and
/// RoCE NICs, their sockets, PCIe switches and the rates of their PCIe links. hwloc knows of no NVLinks.
/// @throws InputError if hwloc cannot read the file
DiscoveredServer read_hwloc_topology(const std::string& text, const std::string& file);

}  // namespace stepcast
