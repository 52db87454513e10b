#include "report/results/shard.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"

namespace stepcast {

using Json = nlohmann::ordered_json;

void write_shard(const std::filesystem::path& folder, const ShardRun& shard) {
  Json inputs = Json::array();
  for (const InputFile& input : shard.inputs)
    inputs.push_back({{"role", input.role}, {"path", input.path}, {"sha256", input.sha256}});
  const Json json = {{"version", shard.version},   {"scenario", shard.scenario},
                     {"settings", shard.settings}, {"draws", shard.draws},
                     {"shard", shard.shard},       {"shards", shard.shards},
                     {"inputs", inputs},           {"results_only", shard.results_only}};
  write_atomically(folder / "shard.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

ShardRun read_shard_folder(const std::filesystem::path& folder) {
  const auto file = folder / "shard.json";
  try {
    const Json json = Json::parse(read_file(file));
    ShardRun shard{.folder = folder,
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

}  // namespace stepcast
