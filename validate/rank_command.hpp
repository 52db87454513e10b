#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "validate/launch.hpp"
#include "validate/validation.hpp"

namespace stepcast {

/// A program of PATH as a whole path; empty if there is none.
std::filesystem::path find_program(const std::string& name);

/// What a rank is told of a validation, but for its mode.
std::vector<std::string> rank_arguments(const ValidationOptions& options);

/// The command line that starts all ranks by mpirun. @throws InputError for what is not installed
std::vector<std::string> rank_command(const RankJob& job, const std::filesystem::path& control);

}  // namespace stepcast
