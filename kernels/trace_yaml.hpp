#pragma once

#include <string>

#include "models/trace.hpp"

namespace stepcast {

/// A trace as the text that `read_trace` reads: one pass a line, six significant digits; absent passes are
/// left out.
std::string trace_yaml(const Trace& trace);

}  // namespace stepcast
