#pragma once

#include <vector>

#include "core/yaml.hpp"
#include "platforms/topology.hpp"

namespace stepcast {

/// The links whose names match a text with `*`, `?` and `[...]`, ascending. @throws InputError if none does,
/// with the nearest name
std::vector<int> read_link_names(const YamlValue& pattern, const Topology& topology);

}  // namespace stepcast
