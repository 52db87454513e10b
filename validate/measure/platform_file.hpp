#pragma once

#include <optional>
#include <string>

#include "runtime/ranks/netcluster.hpp"
#include "validate/measure/link_results.hpp"
#include "validate/measure/storage_benchmark.hpp"

namespace stepcast {

/// A platform with measured links.
struct MeasuredPlatform {
  std::string name;
  std::string source;  ///< who measured it, on what, and how
  Cluster cluster;
  LinkTable links;
  std::string device = "cpu-core";  ///< name in models/devices
  std::optional<MeasuredStorage> storage = {};
};

/// Text of a platform file with one device for each rank. On one machine all ranks are devices of one node.
/// In a netcluster each rank is a node, behind one switch, or in two racks whose uplink has its configured
/// share of the measured bandwidth.
std::string platform_text(const MeasuredPlatform& platform);

}  // namespace stepcast
