#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

/// Reads a YAML file of one or more documents, between which lines `---` stand, by the rules of read_yaml.
/// @throws InputError
std::vector<YamlNode> read_yaml_documents(const std::filesystem::path& file);

/// The text as a YAML scalar in double quotes, which all writers of YAML use. Control characters are escaped,
/// and bytes that are no UTF-8 text replaced.
std::string quoted(const std::string& text);

/// The values as a YAML list with six significant digits, such as "[1.5, 2e-06]".
std::string numbers(const std::vector<double>& values);

}  // namespace stepcast
