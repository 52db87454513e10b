#pragma once

#include <string>
#include <utility>
#include <vector>

#include "platforms/topology.hpp"

namespace stepcast {

/// A host of SimGrid: a device, the CPU of a node, or the storage.
struct SimGridHost {
  std::string name;
  double flops_per_second = 1;
  std::vector<std::pair<std::string, std::string>> properties;  ///< device, memory_bytes, dollars_per_hour
  std::string disk;                                             ///< its name; empty: the host has none
  BytesPerSecond disk_bandwidth;
};

/// The host of an endpoint. Local disks belong to the CPUs of their nodes.
SimGridHost simgrid_host(const Platform& platform, const Topology& topology, int endpoint);

/// The number of endpoints that have a host: all, but the storage only if there is one.
int simgrid_host_count(const Platform& platform);

}  // namespace stepcast
