#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "forecast/forecast_options.hpp"
#include "report/results/manifest.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// What the folder of a shard says about its run, in shard.json. Its simulations are in simulations.jsonl.
struct Shard {
  std::filesystem::path folder = {};
  std::string version = {},
              scenario = {};               ///< of stepcast; path of the scenario's file, as the user wrote it
  std::vector<std::string> settings = {};  ///< `--set`
  int draws = 1, shard = 0, shards = 1;
  bool results_only = false;
  std::vector<InputFile> inputs = {};
};

Shard shard_of(const Scenario& scenario, const RunOptions& options, const Manifest& manifest);

/// Writes shard.json. @throws InputError `FILE: cannot write: REASON`
void write_shard(const std::filesystem::path& folder, const Shard& shard);

/// Reads shard.json. @throws InputError if the folder has none, or if it is none of stepcast's
Shard read_shard_folder(const std::filesystem::path& folder);

/// Refuses shards that do not belong together: of other versions, scenarios or options. @throws InputError
void check_same_run(const std::vector<Shard>& shards);

/// Refuses a shard whose input files have changed since. Files are compared by role, name and content, so
/// that they may lie in other folders now. @throws InputError
void check_same_inputs(const Shard& shard, const Manifest& now);

}  // namespace stepcast
