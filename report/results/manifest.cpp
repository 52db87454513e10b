#include "report/results/manifest.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "core/error.hpp"
#include "core/os/files.hpp"

namespace stepcast {

std::string sha256(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
    throw std::runtime_error("sha256: EVP_Digest failed");
  }
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += fmt::format("{:02x}", digest[i]);
  return text;
}

namespace {

using Json = nlohmann::ordered_json;

std::vector<InputFile> inputs_of(const Json& list) {
  std::vector<InputFile> inputs;
  for (const Json& input : list) inputs.push_back({input.at("role"), input.at("path"), input.at("sha256")});
  return inputs;
}

}  // namespace

InputFile hashed(const std::string& role, const std::filesystem::path& file) {
  return {role, file.string(), sha256(read_file(file))};
}

std::string to_json(const Manifest& manifest) {
  Json inputs = Json::array();
  for (const InputFile& input : manifest.inputs) {
    inputs.push_back({{"role", input.role}, {"path", input.path}, {"sha256", input.sha256}});
  }
  const Json json = {
      {"version", manifest.version}, {"scenario", manifest.scenario},     {"date", manifest.date},
      {"command", manifest.command}, {"settings", manifest.settings},     {"seed", manifest.seed},
      {"sweep", manifest.sweep},     {"fidelities", manifest.fidelities}, {"inputs", inputs}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

namespace {

/// The text of a value for errors.
std::string text_of(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace).substr(0, 40);
}

}  // namespace

Manifest read_manifest(std::string_view text, const std::string& file_name) {
  try {
    const Json json = Json::parse(text);
    if (!json.at("seed").is_number_unsigned())
      throw InputError(fmt::format("{}:1:1: seed: expected an integer from 0 to {}, got {}", file_name,
                                   UINT64_MAX, text_of(json.at("seed"))));
    return {.version = json.at("version"),
            .scenario = json.at("scenario"),
            .date = json.at("date"),
            .command = json.at("command").get<std::vector<std::string>>(),
            .settings = json.value("settings", std::vector<std::string>{}),
            .seed = json.at("seed").get<std::uint64_t>(),
            .sweep = json.at("sweep").get<std::vector<std::string>>(),
            .fidelities = json.at("fidelities").get<std::vector<std::string>>(),
            .inputs = inputs_of(json.at("inputs"))};
  } catch (const Json::exception& error) {
    throw InputError(fmt::format("{}:1:1: expected a manifest of stepcast: {}", file_name, error.what()));
  }
}

void write_shard(const std::filesystem::path& folder, const ShardRun& shard) {
  Json inputs = Json::array();
  for (const InputFile& input : shard.inputs)
    inputs.push_back({{"role", input.role}, {"path", input.path}, {"sha256", input.sha256}});
  const Json json = {{"build", shard.build},       {"scenario", shard.scenario},
                     {"settings", shard.settings}, {"draws", shard.draws},
                     {"shard", shard.shard},       {"shards", shard.shards},
                     {"inputs", inputs},           {"results_only", shard.results_only}};
  write_atomically(folder / "shard.json", json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

namespace {

/// An integer of a shard's description. @throws InputError with the file
int count_of(const Json& json, const char* key, int least, int most, const std::filesystem::path& file) {
  const Json& value = json.at(key);
  const bool fits = value.is_number_integer() && value >= least && value <= most;
  if (!fits)
    throw InputError(fmt::format("{}:1:1: {}: expected an integer from {} to {}, got {}", file.string(), key,
                                 least, most, text_of(value)));
  return value.get<int>();
}

}  // namespace

ShardRun read_shard_folder(const std::filesystem::path& folder) {
  constexpr int kMostDraws = 100000, kMostShards = 1000000;
  const auto file = folder / "shard.json";
  try {
    const Json json = Json::parse(read_file(file));
    ShardRun shard{.folder = folder,
                   .build = json.at("build"),
                   .scenario = json.at("scenario"),
                   .settings = json.at("settings").get<std::vector<std::string>>(),
                   .draws = count_of(json, "draws", 0, kMostDraws, file),
                   .shard = count_of(json, "shard", 0, kMostShards - 1, file),
                   .shards = count_of(json, "shards", 1, kMostShards, file),
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
