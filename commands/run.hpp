#pragma once

#include <string>
#include <vector>

namespace stepcast {

struct RunOptions {
  std::vector<std::string> scenarios;
  std::vector<std::string> settings;  ///< KEY=VALUE
  std::string output;                 ///< empty: results/NAME
  int processes = 0;                  ///< 0: one a core
  int draws = 64;
  std::string shard_text;  ///< "i/N"
  int shard = 0, shards = 1;
  std::string memory_limit;  ///< with its unit; empty: 80 % of the machine's
  std::string time_limit;    ///< of the largest point, with its unit; empty: 1 h
  std::string timeline;      ///< name of a point
  bool resume = false, dry_run = false;
  bool results_only = false;  ///< no plots, and no search for what would help most
};

/// Simulates scenarios, writes their results and prints tables.
void run(const RunOptions& options);

}  // namespace stepcast
