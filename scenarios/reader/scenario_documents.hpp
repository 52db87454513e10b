#pragma once

#include <filesystem>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

// A file may hold several scenarios, as YAML documents. FILE.yaml#NAME is the path of one of them.

/// FILE.yaml of FILE.yaml#NAME; other paths as they are.
std::filesystem::path file_of(const std::filesystem::path& path);

/// The paths of a file's scenarios, FILE.yaml#NAME; the given path alone if it has such a name already, and
/// for a file with one scenario.
std::vector<std::filesystem::path> scenarios_in(const std::filesystem::path& path);

/// The document of a scenario. @throws InputError for a path without a name to a file with several
YamlNode read_scenario_document(const std::filesystem::path& path);

/// The path of the scenario that `defaults` names: another file, or another scenario of the same file.
std::filesystem::path path_of_defaults(const YamlValue& name, const std::filesystem::path& path);

/// The files that `defaults` names, each once, other than the scenario's own.
std::vector<std::filesystem::path> files_of_defaults(const std::filesystem::path& scenario,
                                                     const std::vector<std::filesystem::path>& defaults);

/// Whether both paths mean the same scenario.
bool same_scenario(const std::filesystem::path& one, const std::filesystem::path& other);

}  // namespace stepcast
