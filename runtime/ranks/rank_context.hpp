#pragma once

#include <filesystem>
#include <vector>

#include "runtime/ranks/netcluster.hpp"
#include "runtime/ranks/shared_control_block.hpp"
#include "runtime/transport/thread_scheduling.hpp"
#include "runtime/transport/transport.hpp"

namespace stepcast {

/// The environment of one rank: its cluster, its output folder, its state and its transports.
struct RankContext {
  Cluster cluster;
  std::filesystem::path folder;  ///< where the rank writes its results
  SharedControlBlock& control;
  RankState& state;  ///< this rank's entry of `control`
  PollingPolicy& polling;
  Transport& transport;           ///< for collectives
  Transport* message_transport;   ///< for point-to-point messages; null in `stepcast calibrate`
  LibraryAllReduce library = {};  ///< of the transport; its sums belong to real runs
  /// Libraries whose all-reduces `stepcast calibrate` measures beside this project's.
  std::vector<LibraryAllReduce> compared = {};
};

}  // namespace stepcast
