#pragma once

#include <string>

#include "validate/cluster.hpp"
#include "validate/link_table.hpp"

namespace stepcast {

struct MeasuredPlatform {
  std::string name;
  std::string source;  ///< who measured, on what, how
  Cluster cluster;
  LinkTable links;
  std::string device = "cpu-core";  ///< of models/devices
};

/// A file for platforms/: one device a rank. On one machine all ranks are devices of one node; in a
/// netcluster each is a node, behind one switch or in two racks whose uplink has its set share of the
/// measured bandwidth.
std::string platform_text(const MeasuredPlatform& platform);

}  // namespace stepcast
