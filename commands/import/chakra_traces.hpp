#pragma once

#include <string>

namespace stepcast {

/// Checks the Chakra traces of a folder, prints what they hold, and writes a scenario that replays them.
/// @throws InputError
void import_chakra_traces(const std::string& folder, const std::string& output);

}  // namespace stepcast
