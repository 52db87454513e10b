#pragma once

#include <filesystem>
#include <string>

#include "core/yaml.hpp"

namespace stepcast {

/// Folder that holds models/, platforms/ and scenarios/: the environment variable STEPCAST_DATA, or where
/// stepcast was built.
std::filesystem::path data_folder();

/// File that a scenario means by `name`: a path ending in .yaml is taken from the scenario's own folder, a
/// plain name is FOLDER/NAME.yaml of the data folder. Throws InputError with the nearest name there is.
std::filesystem::path data_file(const YamlValue& name, const std::string& folder);

}  // namespace stepcast
