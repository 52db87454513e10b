#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

/// SHA-256 (FIPS 180-4) of some bytes as 64 lower-case hexadecimal digits.
std::string sha256(std::string_view bytes);

/// An input file of a run.
struct InputFile {
  std::string role = {};    ///< "scenario", "model", "trace", "platform"
  std::string path = {};    ///< as the user wrote it
  std::string sha256 = {};  ///< 64 hexadecimal digits
};

/// The content of manifest.json: everything that is needed to compute a result again.
struct Manifest {
  std::string version = {};               ///< of stepcast
  std::string scenario = {};              ///< its name
  std::string date = {};                  ///< ISO 8601; set by the caller, so that tests can use a fixed date
  std::vector<std::string> command = {};  ///< one entry per argument
  std::vector<std::string> settings = {};  ///< `--set`
  std::uint64_t seed = 0;
  std::vector<std::string> sweep = {};       ///< keys of the sweep, the columns that identify a point
  std::vector<std::string> fidelities = {};  ///< values of the column fidelity over the points
  std::vector<InputFile> inputs = {};
};

/// A file with its role, path and hash. @throws InputError `FILE: cannot read: REASON`
InputFile hashed(const std::string& role, const std::filesystem::path& file);

/// Indented JSON with a newline at the end; equal manifests give equal bytes.
std::string to_json(const Manifest& manifest);

/// Reads manifest.json. @throws InputError `FILE:1:1: expected a manifest of stepcast: REASON`
Manifest read_manifest(std::string_view text, const std::string& file_name);

/// The description of a shard's run in its folder's shard.json. The simulations are in simulations.jsonl.
struct ShardRun {
  std::filesystem::path folder = {};
  std::string build = {},
              scenario = {};  ///< of stepcast (build_id); path of the scenario's file, as the user wrote it
  std::vector<std::string> settings = {};  ///< `--set`
  int draws = 1;                           ///< `--draws`; 0: as many as the assumptions need
  int shard = 0, shards = 1;
  bool results_only = false;
  std::vector<InputFile> inputs = {};
};

/// Writes shard.json. @throws InputError `FILE: cannot write: REASON`
void write_shard(const std::filesystem::path& folder, const ShardRun& shard);

/// Reads shard.json. @throws InputError if the folder has none, or if it is none of stepcast's
ShardRun read_shard_folder(const std::filesystem::path& folder);

}  // namespace stepcast
