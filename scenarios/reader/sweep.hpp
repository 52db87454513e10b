#pragma once

#include <string>
#include <vector>

#include "scenarios/reader/assignment.hpp"

namespace stepcast {

/// One point of a sweep.
struct Point {
  std::string name;  ///< "workers=8, strategy.all_reduce=ring"; the scenario's name without a sweep
  std::vector<Assignment> values;  ///< values that the point sets, in the order of the file
};

/// Reads the points of `sweep:`. A mapping from keys to values is the product of its keys; the last key
/// varies fastest. A list of such mappings is one product after the other. Values are a list, {from, to,
/// times} or {from, to, step}.
/// @param points  receives the points
/// @param keys    receives every key once, in order of appearance
void read_sweep(const YamlValue& value, std::vector<Point>& points, std::vector<std::string>& keys);

/// The name of a point, such as "workers=8, strategy.all_reduce=ring".
std::string point_name(const std::vector<Assignment>& values);

}  // namespace stepcast
