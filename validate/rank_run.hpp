#pragma once

#include <filesystem>
#include <functional>

#include "validate/cluster.hpp"
#include "validate/control.hpp"
#include "validate/leisure.hpp"
#include "validate/transport.hpp"

namespace stepcast {

/// What one rank has to work with.
struct RankRun {
  Cluster cluster;
  std::filesystem::path folder;  ///< for what it writes
  Control& control;
  RankState& state;
  Leisure& leisure;
  Transport& transport;  ///< of collectives
  Transport* mail;       ///< of messages between programs; calibrate has none
  std::function<void(float*, std::int64_t)> library_all_reduce;  ///< the MPI library's own, in place
};

}  // namespace stepcast
