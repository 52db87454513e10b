#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "validate/launch/rendezvous.hpp"

namespace stepcast {

/// A rank without a heartbeat for this long has failed, unless the user sets another time [s].
constexpr double kHeartbeatTimeout = 30;

/// One launch of all ranks.
struct RankJob {
  Cluster cluster;
  std::filesystem::path folder;          ///< absolute; ranks write their results here
  std::string log = "ranks.log";         ///< file in `folder` for the output of the ranks
  std::vector<std::string> arguments;    ///< arguments of stepcast-rank, without those that say where it runs
  double heartbeat = kHeartbeatTimeout;  ///< a rank without a heartbeat for this long has failed [s]
  std::function<bool()> interrupted;  ///< polled several times a second: true ends the launch; may be empty
  /// Called each time that all ranks wait for the next stage, counted from 1; the stage opens when it
  /// returns. It calls `check_ranks` now and then, so that failed ranks are found meanwhile. May be empty: no
  /// stage opens.
  std::function<void(const std::function<void()>& check_ranks)> before_stage;
  /// Gets the status of rank 0 several times a second; may be empty.
  std::function<void(const std::string&)> progress;
  /// Makes the command lines of the ranks, one for each, given this job and the file of the control block.
  /// Empty: mpirun starts them.
  std::function<std::vector<std::vector<std::string>>(const RankJob& job,
                                                      const std::filesystem::path& control)>
      commands;
  std::optional<RemoteRanks> remote = {};  ///< ranks on several machines; then `commands` is empty
  bool share_cores = false;                ///< the ranks that mpirun starts compute on each core in turns
};

/// Starts the ranks and monitors them until all have finished. No rank is left running afterwards, whatever
/// happens.
/// @throws InputError if mpirun or stepcast-rank is missing, or if a rank reported a user's error; RankLost
/// that names the failed rank; Interrupted; std::runtime_error with the error that a rank reported
void run_ranks(const RankJob& job);

/// Starts nothing. @throws InputError if a program is missing that run_ranks would start
void check_launch(const RankJob& job);

/// Help text of --transport.
constexpr char kTransportHelp[] =
    "Carrier of messages and collectives between CPU ranks: own (shared memory or sockets of stepcast) or "
    "mpi "
    "(point-to-point messages of the MPI library; `all_reduce: mpi` by its MPI_Allreduce).";

/// Arguments of stepcast-rank for a validation, without its mode.
std::vector<std::string> rank_arguments(const ValidationOptions& options);

/// Runs each point in ranks of its own, so that ranks that die or hang cost that point alone. These ranks use
/// the links and traces in the job's folder, and measure only what is not there. The error of a point is
/// printed when it fails. The output of a point's ranks is kept in the file point-N.log, where N counts the
/// scenario's points from 1.
/// @param job          of one launch; its arguments, its log and its stage are set for each point
/// @param before_runs  called when the ranks of a point wait for their runs; gets the point's index in
///                     `validation`; may be empty
/// @return the names of the points that failed
/// @throws InputError if a rank reports one; Interrupted
std::vector<std::string> run_points_apart(const RankJob& job, const Validation& validation,
                                          const ValidationOptions& options,
                                          const std::function<void(std::size_t index)>& before_runs);

/// The error that ends a command whose other points have their results.
RankLost points_lost(const std::vector<std::string>& failed, std::size_t points);

}  // namespace stepcast
