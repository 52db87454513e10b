#pragma once

#include <filesystem>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

/// Reads a YAML file of one or more documents, between which lines `---` stand, by the rules of read_yaml.
/// @throws InputError
std::vector<YamlNode> read_yaml_documents(const std::filesystem::path& file);

}  // namespace stepcast
