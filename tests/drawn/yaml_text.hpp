#pragma once

#include <string>

#include "core/yaml.hpp"

namespace stepcast::drawn {

/// A mapping as YAML text, each of its keys on a line.
std::string yaml_text(const YamlNode& mapping);

}  // namespace stepcast::drawn
