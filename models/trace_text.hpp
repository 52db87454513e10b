#pragma once

#include <string>

#include "models/trace.hpp"

namespace stepcast {

/// The YAML text of a trace: one pass a line, times with six significant digits. `read_trace` reads it back.
std::string to_yaml(const Trace& trace);

}  // namespace stepcast
