#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace stepcast {

struct FinishedChild {
  bool started = false;     ///< false: no such program
  int status = 0;           ///< exit code, or 128 + the signal that ended it
  std::string errors = {};  ///< what it wrote to standard error
};

/// Runs a program found in PATH and waits for it. No shell: every argument arrives as it is. Standard input
/// is empty, standard output dropped. The locale is C.UTF-8, so that numbers have decimal points.
/// @param folder  working folder of the child; its standard error is kept in a file there
/// @throws std::system_error where it cannot be started for another reason than that it is missing
FinishedChild run_child(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

}  // namespace stepcast
