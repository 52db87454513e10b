#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "validate/cluster.hpp"

namespace stepcast {

/// One start of all ranks.
struct RankJob {
  Cluster cluster;
  std::filesystem::path folder;        ///< absolute; ranks write here, and their output goes to ranks.log
  std::vector<std::string> arguments;  ///< of stepcast-rank, beside those that say where it runs
  double heartbeat = 30;               ///< a rank that does nothing for so long hangs [s]
  std::function<bool()> interrupted;   ///< asked often; may be empty
  /// Called when all ranks wait for stage 1; they go on when it returns, and are watched whenever it calls
  /// `meanwhile`. May be empty.
  std::function<void(const std::function<void()>& meanwhile)> before_stage;
  std::function<void(const std::string&)> progress;  ///< told what rank 0 does; may be empty
  /// Command lines of the ranks, one each, for the file that they share; empty: mpirun starts them.
  std::function<std::vector<std::vector<std::string>>(const std::filesystem::path& control)> commands;
};

/// Starts the ranks and watches them until all have finished. Whatever happens, none is left.
/// @throws InputError without mpirun or stepcast-rank; RankLost that names the rank;
/// Interrupted; std::runtime_error with what a rank complained of
void run_ranks(const RankJob& job);

}  // namespace stepcast
