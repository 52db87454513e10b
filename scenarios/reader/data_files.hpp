#pragma once

#include <filesystem>
#include <string>

#include "core/yaml.hpp"

namespace stepcast {

/// Folder that holds models/, platforms/ and scenarios/: the environment variable STEPCAST_DATA, or where
/// stepcast was built.
std::filesystem::path data_folder();

/// The file that a scenario refers to by `name`. A path that ends in .yaml is relative to the folder of the
/// scenario, or to the current folder if it comes from the command line. A plain name is FOLDER/NAME.yaml in
/// the data folder; networks may also stand in models/library/FAMILY/.
/// @throws InputError with the nearest existing name
std::filesystem::path data_file(const YamlValue& name, const std::string& folder);

/// A name from the command line as a YAML value. Paths are relative to the current folder.
YamlNode command_line_name(const std::string& name);

}  // namespace stepcast
