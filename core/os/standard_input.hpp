#pragma once

#include <filesystem>
#include <string>

namespace stepcast {

/// Whether a path from the command line is "-", which stands for standard input.
bool is_standard_input(const std::filesystem::path& file);

/// All of standard input. It is read at the first call, so that a command can look at it several times.
/// @throws InputError if it is larger than 1 MiB
const std::string& standard_input();

}  // namespace stepcast
