#include "commands/run/shards.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"

namespace stepcast {
namespace {

using Json = nlohmann::ordered_json;

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

}  // namespace

Shard shard_of(const Scenario& scenario, const RunOptions& options, const Manifest& manifest) {
  return {.version = manifest.version,
          .scenario = scenario.file.string(),
          .settings = options.settings,
          .draws = options.draws,
          .shard = options.shard,
          .shards = options.shards,
          .results_only = options.results_only,
          .inputs = manifest.inputs};
}

void write_shard(const std::filesystem::path& folder, const Shard& shard) {
  Json inputs = Json::array();
  for (const InputFile& input : shard.inputs)
    inputs.push_back({{"role", input.role}, {"path", input.path}, {"sha256", input.sha256}});
  const Json json = {{"version", shard.version},   {"scenario", shard.scenario},
                     {"settings", shard.settings}, {"draws", shard.draws},
                     {"shard", shard.shard},       {"shards", shard.shards},
                     {"inputs", inputs},           {"results_only", shard.results_only}};
  write_atomically(folder / "shard.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Shard read_shard_folder(const std::filesystem::path& folder) {
  const auto file = folder / "shard.json";
  try {
    const Json json = Json::parse(read_file(file));
    Shard shard{.folder = folder,
                .version = json.at("version"),
                .scenario = json.at("scenario"),
                .settings = json.at("settings").get<std::vector<std::string>>(),
                .draws = json.at("draws"),
                .shard = json.at("shard"),
                .shards = json.at("shards"),
                .results_only = json.at("results_only")};
    for (const Json& input : json.at("inputs"))
      shard.inputs.push_back({input.at("role"), input.at("path"), input.at("sha256")});
    return shard;
  } catch (const Json::exception& error) {
    throw InputError(
        fmt::format("{}:1:1: expected what run --shard writes: {}", file.string(), error.what()));
  }
}

void check_same_run(const std::vector<Shard>& shards) {
  const Shard& first = shards.front();
  for (const Shard& one : shards) {
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

void check_same_inputs(const Shard& shard, const Manifest& now) {
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
