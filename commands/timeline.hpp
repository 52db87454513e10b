#pragma once

#include <filesystem>
#include <string>

#include "commands/forecast.hpp"

namespace stepcast {

/// Number of the point that `--timeline` names. Throws InputError with a name that there is.
std::size_t timeline_point(const Scenario& scenario, const std::string& name);

/// Simulates the point again, in a process of its own, and writes what it did as Chrome's trace format. Up to
/// 64 workers have a track each; above that one track shows the slowest.
void write_timeline(const Scenario& scenario, Library& library, const std::vector<Assignment>& values,
                    const std::filesystem::path& file);

}  // namespace stepcast
