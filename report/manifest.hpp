#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

/// One file that a run read.
struct InputFile {
  std::string role = {};    ///< "scenario", "model", "trace", "platform"
  std::string path = {};    ///< as given
  std::string sha256 = {};  ///< 64 hexadecimal digits
};

/// manifest.json: what a result was computed from and how, enough to compute it again.
struct Manifest {
  std::string version = {};               ///< of stepcast
  std::string scenario = {};              ///< its name
  std::string date = {};                  ///< ISO 8601; the caller's, so that tests can fix it
  std::vector<std::string> command = {};  ///< one entry an argument
  std::uint64_t seed = 0;
  std::vector<std::string> sweep = {};  ///< keys of the sweep: the columns that tell points apart
  std::vector<std::string> forms = {};  ///< forms of communication that the points used
  std::vector<InputFile> inputs = {};
};

/// The file's hash together with its role and path. @throws InputError `FILE: cannot read: REASON`
InputFile hashed(const std::string& role, const std::filesystem::path& file);

/// Indented JSON ending in a newline; the same manifest gives the same bytes.
std::string to_json(const Manifest& manifest);

/// @throws InputError `FILE:1:1: expected a manifest of stepcast: REASON`
Manifest read_manifest(std::string_view text, const std::string& file_name);

}  // namespace stepcast
