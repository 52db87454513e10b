#pragma once

#include <string>

#include "platforms/platform.hpp"

namespace stepcast {

/// A platform as an XML file of SimGrid (platform version 4.1), which SimGrid 3.32's own programs load: a
/// host for each device and each CPU, a host for the storage, disks, named links with latencies, and the
/// route of every two hosts. The zone is flat: where a node has several NICs, the NIC of a route depends on
/// both of its hosts, and zones of XML have one gateway for each other zone.
///
/// Message costs are not in the file: SimGrid has them as options of a run.
/// @throws InputError if the platform has more endpoints than such a file can hold
std::string simgrid_platform_file(const Platform& platform);

}  // namespace stepcast
