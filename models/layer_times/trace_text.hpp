#pragma once

#include <string>
#include <vector>

#include "models/layer_times/trace.hpp"

namespace stepcast {

/// The text as a YAML scalar in double quotes.
std::string quoted(const std::string& text);

/// The values as a YAML list with six significant digits, such as "[1.5, 2e-06]".
std::string numbers(const std::vector<double>& values);

/// The YAML text of a trace: one line for each pass, times with six significant digits. `read_trace` reads it
/// back.
std::string to_yaml(const Trace& trace);

}  // namespace stepcast
