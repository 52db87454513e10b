#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/results/manifest.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// The files on which results depend, with their hashes: the scenario, those that it inherits from, and all
/// that the library has read.
std::vector<InputFile> input_files(const Scenario& scenario, const Library& library);

/// Identifies the build of this program: a hash of its own file. Unlike a hash of the sources, it also tells
/// compilers, their options and strategies of other projects apart; a copy on another machine has the same.
const std::string& build_id();

/// A hash of the build, the files and further texts, such as settings. Finished work of an earlier call is
/// used only under the same fingerprint.
std::string fingerprint_of(const std::vector<InputFile>& inputs, const std::vector<std::string>& texts);

/// Whether the finished work of an earlier call may be used: `resume` asks for it, and the call's fingerprint
/// in `file` is this one. If another one is there, a line on standard error says so.
bool may_resume(const std::filesystem::path& file, const std::string& fingerprint, bool resume);
void write_fingerprint(const std::filesystem::path& file, const std::string& fingerprint);

}  // namespace stepcast
