#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// The options of `stepcast run`; `search`, `validate` and `learn` set the fields that they need.
struct RunOptions {
  std::vector<std::string> scenarios;
  std::vector<std::string> settings;  ///< overrides of the form KEY=VALUE
  std::string output;                 ///< folder; empty: results/NAME
  int processes = 0;                  ///< 0: one per core
  int draws = 0;                      ///< 0: as many as the scenario needs
  std::string shard_text;             ///< "i/N"
  int shard = 0, shards = 1;
  int slurm = 0;                   ///< most tasks of a job array of Slurm; 0: run here
  std::string memory_limit;        ///< with a unit; empty: 80 % of the machine's memory
  std::string time_limit;          ///< for all simulations of the largest point, with a unit; empty: 1 h
  std::string timeline;            ///< name of the point whose timeline is written
  std::string timeline_ranks;      ///< its ranks; empty: a few
  bool timeline_per_rank = false;  ///< a file per rank instead of one for all
  bool resume = false, dry_run = false;
  bool results_only = false;  ///< no plots, and no simulations with doubled resources or without noise
};

}  // namespace stepcast
