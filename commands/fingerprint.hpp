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

/// A hash of the version, the files and further texts, such as settings. Finished work of an earlier call is
/// used only under the same fingerprint.
std::string fingerprint_of(const std::vector<InputFile>& inputs, const std::vector<std::string>& texts);

/// Whether `file` holds this fingerprint; false if there is no such file.
bool holds_fingerprint(const std::filesystem::path& file, const std::string& fingerprint);
void write_fingerprint(const std::filesystem::path& file, const std::string& fingerprint);

}  // namespace stepcast
