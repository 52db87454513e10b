#pragma once

#include <string>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

/// `key.path: value`: one value of a scenario replaced, by a sweep, an assumption, a calibration or `--set`.
struct Assignment {
  std::string path;  ///< "strategy.bucket", "platform.network.levels[0].taper"
  YamlNode value;
};

/// Parses "key.path=value" of the command line; the value is YAML, and null takes the key away. Throws
/// InputError.
Assignment parse_assignment(const std::string& text);

/// Sets the value at the path, making mappings on the way where there are none; nothing as a value removes
/// the key. Whether the key is known is found when the scenario is read. Throws InputError at the value's
/// place for a path that cannot be, or for a key to remove that is not there.
void assign(YamlNode& root, const Assignment& assignment);

/// The value at a path, or null.
const YamlNode* find_path(const YamlNode& root, const std::string& path);

}  // namespace stepcast
