#pragma once

#include <string>

namespace stepcast {

/// Prints how the times of a second trace differ from those of a first one, of the same network: per layer,
/// per layer kind and for the step. With a folder, writes traces.csv and draws bars per layer kind.
/// @throws InputError if a file is no trace or their layers differ
void compare_traces(const std::string& first, const std::string& second, const std::string& folder);

}  // namespace stepcast
