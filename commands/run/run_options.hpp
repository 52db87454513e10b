#pragma once

#include <string>
#include <vector>

#include "forecast/resource_limits.hpp"

namespace stepcast {

/// The options of `stepcast run`.
struct RunOptions : RunLimits {
  std::vector<std::string> scenarios;
  std::vector<std::string> settings;  ///< overrides of the form KEY=VALUE
  std::vector<std::string> measured;  ///< files of measured runs, see RunFile
  std::string output;                 ///< folder; empty: results/NAME
  int draws = 0;                      ///< 0: as many as the scenario needs
  std::string shard_text;             ///< "i/N"
  int shard = 0, shards = 1;
  int slurm = 0;                   ///< most tasks of a job array of Slurm; 0: run here
  std::string timeline;            ///< name of the point whose timeline is written
  std::string timeline_ranks;      ///< its ranks; empty: a few
  bool timeline_per_rank = false;  ///< a file per rank instead of one for all
  double least_gain = 1.5;         ///< of a doubling of the workers that is worth it
  bool resume = false, dry_run = false;
  std::string decide;         ///< devices and time for a measurement; empty: none is proposed
  bool no_advice = false;     ///< no simulations of what a user can change
  bool results_only = false;  ///< no plots, no advice, and no simulations without noise
};

/// Reads `shard_text` into shard and shards. Throws InputError.
void read_shard(RunOptions& options);

}  // namespace stepcast
