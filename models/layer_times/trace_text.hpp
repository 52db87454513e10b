#pragma once

#include <string>

#include "core/yaml.hpp"
#include "models/layer_times/trace.hpp"

namespace stepcast {

/// The YAML text of a trace: one line for each pass, times with six significant digits. `read_trace` reads it
/// back.
std::string to_yaml(const Trace& trace);

}  // namespace stepcast
