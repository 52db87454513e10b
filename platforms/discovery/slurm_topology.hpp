#pragma once

#include <string>

#include "platforms/discovery/discovered.hpp"

namespace stepcast {

/// The fabric of Slurm's `topology.conf` (plugin topology/tree): switches with their nodes or lower switches.
/// The file names no rates, and for each switch only one of the switches above it, so that tapers and the
/// number of cables are not known.
/// @throws InputError `FILE:LINE: ...`
DiscoveredFabric read_slurm_topology(const std::string& text, const std::string& file);

/// The names of a host list such as "gpu[01-03,7],login". @throws InputError with `place` in front
std::vector<std::string> host_list(const std::string& text, const std::string& place);

}  // namespace stepcast
