#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/results/manifest.hpp"

namespace stepcast {

/// The description of a shard's run in its folder's shard.json. The simulations are in simulations.jsonl.
struct ShardRun {
  std::filesystem::path folder = {};
  std::string version = {},
              scenario = {};               ///< of stepcast; path of the scenario's file, as the user wrote it
  std::vector<std::string> settings = {};  ///< `--set`
  int draws = 1, shard = 0, shards = 1;
  bool results_only = false;
  std::vector<InputFile> inputs = {};
};

/// Writes shard.json. @throws InputError `FILE: cannot write: REASON`
void write_shard(const std::filesystem::path& folder, const ShardRun& shard);

/// Reads shard.json. @throws InputError if the folder has none, or if it is none of stepcast's
ShardRun read_shard_folder(const std::filesystem::path& folder);

}  // namespace stepcast
