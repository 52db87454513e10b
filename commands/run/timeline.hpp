#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "commands/run/run_options.hpp"
#include "forecast/forecast.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The index of the point that an option names. Throws InputError with the nearest existing name.
std::size_t point_of(const Scenario& scenario, const std::string& option, const std::string& name);

/// Checks the options `--timeline` and `--timeline-ranks` before anything is simulated. @throws InputError
void check_timeline(const Scenario& scenario, const RunOptions& options, Library& library);

/// The ranks of `--timeline-ranks`, ascending.
/// @param text  "0,8-15", or "all"; empty: all of at most 8 ranks, else the first rank of every role and the
///              lowest others, 8 in all
/// @throws InputError
std::vector<int> timeline_ranks(const Plan& plan, const std::string& text);

/// Simulates a point again, in a child process, and writes its timeline: `timeline.json.gz`, or a file per
/// rank in `timeline/`. Up to 4,096 ranks are all simulated; of more, a program may stand for equal
/// ranks, which all show the slowest.
/// @param file  the file or the folder
void write_timeline(const Scenario& scenario, Library& library, const std::vector<Assignment>& values,
                    const RunOptions& options, const std::filesystem::path& file);

}  // namespace stepcast
