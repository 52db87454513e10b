#pragma once

#include <filesystem>
#include <functional>

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
  Transport& transport;          ///< for collectives
  Transport* message_transport;  ///< for point-to-point messages; null in `stepcast calibrate`
  /// All-reduce (sum, in place) over all ranks by the MPI library; empty where there is no MPI.
  std::function<void(float*, std::int64_t)> library_all_reduce;
};

}  // namespace stepcast
