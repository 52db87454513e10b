#pragma once

#include <filesystem>

#include "commands/run.hpp"
#include "report/manifest.hpp"
#include "scenarios/library.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast {

/// Where the results of a scenario go.
std::filesystem::path folder_of(const Scenario& scenario, const RunOptions& options);

/// What this run depends on: version, command line, and the hashes of all files that were read.
Manifest manifest_of(const Scenario& scenario, const Library& library);

/// Journal of finished simulations; kept across runs only where `--resume` asks and inputs are the same.
std::filesystem::path journal_of(const std::filesystem::path& folder, const Manifest& manifest,
                                 const RunOptions& options);

}  // namespace stepcast
