#pragma once

#include <filesystem>
#include <string>

#include "core/yaml.hpp"

namespace stepcast {

/// Folder that holds models/, platforms/ and scenarios/: the environment variable STEPCAST_DATA, or where
/// stepcast was built.
std::filesystem::path data_folder();

/// File that a scenario means by `name`: a path ending in .yaml is taken from the scenario's own folder (from
/// the current one if typed on the command line), a plain name is FOLDER/NAME.yaml of the data folder. Throws
/// InputError with the nearest name there is.
std::filesystem::path data_file(const YamlValue& name, const std::string& folder);

/// A name from the command line as a YAML value; paths are taken from the current folder.
YamlNode command_line_name(const std::string& name);

}  // namespace stepcast
