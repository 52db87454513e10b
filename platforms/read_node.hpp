#pragma once

#include <string>

#include "core/yaml.hpp"
#include "platforms/platform.hpp"

namespace stepcast {

/// `node:` of a platform.
struct NodeDescription {
  NodeShape shape;
  int devices = 1;
};

/// @param device  name of the device, which says whether copies between devices pass through host memory
/// @throws InputError
NodeDescription read_node(const YamlValue& value, const std::string& device);

}  // namespace stepcast
