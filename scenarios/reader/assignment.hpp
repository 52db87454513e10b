#pragma once

#include <string>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

/// Throws InputError if a scenario's document has an unknown key at its top level. Values are not read.
void check_keys(const YamlNode& document);

/// A replacement of one value of a scenario by a sweep, an assumption, a calibration or `--set`.
struct Assignment {
  std::string path;  ///< "strategy.bucket", "platform.network.levels[0].taper"
  YamlNode value;
};

/// Parses "key.path=value" from the command line. The value is YAML; null removes the key. @throws InputError
Assignment parse_assignment(const std::string& text);

/// Sets the value at the path and creates missing mappings on the way. A null value removes the key. Unknown
/// keys are reported later, when the scenario is read. @throws InputError for an invalid path, or if a key to
/// remove does not exist
void assign(YamlNode& root, const Assignment& assignment);

/// The value at a path, or null.
const YamlNode* find_path(const YamlNode& root, const std::string& path);

}  // namespace stepcast
