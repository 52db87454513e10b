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
std::vector<Assignment> parse_assignments(const std::vector<std::string>& texts);

/// An assignment that the program itself makes.
Assignment assignment(std::string path, std::string value);
Assignment assignment(std::string path, std::int64_t value);
Assignment assignment(std::string path, bool value);
Assignment assignment(std::string path, const char* value);
inline Assignment assignment(std::string path, int value) {
  return assignment(std::move(path), std::int64_t{value});
}
/// One of a mapping with these values.
Assignment assignment(std::string path, const std::vector<Assignment>& entries);
/// One that removes a key.
Assignment removal(std::string path);

/// Sets the value at the path and creates missing mappings on the way. A null value removes the key. Unknown
/// keys are reported later, when the scenario is read. @throws InputError for an invalid path, or if a key to
/// remove does not exist
void assign(YamlNode& root, const Assignment& assignment);

/// The value at a path, or null.
const YamlNode* find_path(const YamlNode& root, const std::string& path);

/// One point of a sweep.
struct Point {
  std::string name;  ///< "workers=8, strategy.all_reduce=ring"; the scenario's name without a sweep
  std::vector<Assignment> values;  ///< values that the point sets, in the order of the file
};

/// Reads the points of `sweep:`. A mapping from keys to values is the product of its keys; the last key
/// varies fastest. A list of such mappings is one product after the other. Values are a list, {from, to,
/// times} or {from, to, step}. `exclude` removes the points of its mapping that have all of the values of an
/// entry, and `include` adds points.
/// @param points  receives the points
/// @param keys    receives every key once, in order of appearance
void read_sweep(const YamlValue& value, std::vector<Point>& points, std::vector<std::string>& keys);

/// The name of a point, such as "workers=8, strategy.all_reduce=ring".
std::string point_name(const std::vector<Assignment>& values);

}  // namespace stepcast
