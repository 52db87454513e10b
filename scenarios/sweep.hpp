#pragma once

#include "scenarios/scenario.hpp"

namespace stepcast {

/// Points of `sweep:`: a mapping from keys to values is the product of its keys, the last key fastest; a list
/// of such mappings is one after the other. Values are a list, or {from, to, times} or {from, to, step}.
/// @param points, keys  filled; every key once, in order of appearance
void read_sweep(const YamlValue& value, std::vector<Point>& points, std::vector<std::string>& keys);

/// "workers=8, strategy.all_reduce=ring"
std::string point_name(const std::vector<Assignment>& values);

}  // namespace stepcast
