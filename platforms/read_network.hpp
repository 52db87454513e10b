#pragma once

#include "core/yaml.hpp"
#include "platforms/platform.hpp"

namespace stepcast {

/// Reads `network:` of a platform. @param node  which the NICs are connected to
/// @throws InputError
NetworkShape read_network(const YamlValue& value, const NodeShape& node);

}  // namespace stepcast
