#include "commands/run/shards.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace stepcast {
namespace {

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

ShardRun shard_of(const Scenario& scenario, const RunOptions& options, const Manifest& manifest) {
  return {.version = manifest.version,
          .scenario = scenario.file.string(),
          .settings = options.settings,
          .draws = options.draws,
          .shard = options.shard,
          .shards = options.shards,
          .results_only = options.results_only,
          .inputs = manifest.inputs};
}

void check_same_run(const std::vector<ShardRun>& shards) {
  const ShardRun& first = shards.front();
  for (const ShardRun& one : shards) {
    const auto refuse = [&](const char* what) {
      throw InputError(fmt::format("{}: expected a shard of the same run as {}, but {} differs",
                                   one.folder.string(), first.folder.string(), what));
    };
    if (one.version != first.version) refuse("stepcast's version");
    if (file_name(one.scenario) != file_name(first.scenario)) refuse("the scenario");
    if (one.settings != first.settings) refuse("--set");
    if (one.draws != first.draws) refuse("--draws");
    if (one.results_only != first.results_only) refuse("--results-only");
  }
}

void check_same_inputs(const ShardRun& shard, const Manifest& now) {
  for (const InputFile& then : shard.inputs) {
    const auto same = [&](const InputFile& one) {
      return one.role == then.role && file_name(one.path) == file_name(then.path) &&
             one.sha256 == then.sha256;
    };
    if (std::ranges::none_of(now.inputs, same))
      throw InputError(fmt::format("{}: the {} {} has changed since this shard was run; run it again",
                                   shard.folder.string(), then.role, then.path));
  }
}

}  // namespace stepcast
