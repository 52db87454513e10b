#pragma once

#include "core/yaml.hpp"

namespace stepcast {

/// Throws InputError for a key of a scenario's document that no run has; what the keys hold is not read.
void check_keys(const YamlNode& document);

}  // namespace stepcast
