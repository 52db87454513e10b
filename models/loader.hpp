#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "models/layer_times/derived_trace.hpp"

namespace stepcast {

/// The file of a network, where FOLDER is `models/` of the source tree or an installed copy:
/// `FOLDER/NAME.yaml`, or else `FOLDER/library/FAMILY/NAME.yaml` if there is such a file.
std::filesystem::path model_file(const std::filesystem::path& folder, const std::string& name);

/// Names of the `.yaml` files in the folder, and in `library/*/` below it if there is such a folder; sorted.
std::vector<std::string> names_in(const std::filesystem::path& folder);

/// Reads the file of a network. @throws InputError
Model load_model(const std::filesystem::path& folder, const std::string& name);

/// Reads `FOLDER/devices/NAME.yaml`. @throws InputError
Device load_device(const std::filesystem::path& folder, const std::string& name);

/// The name of the file in FOLDER/devices whose `reported_as` is `gpu`, such as "NVIDIA H200", or its end;
/// empty: there is none.
std::string device_reported_as(const std::filesystem::path& folder, const std::string& gpu);

/// Fits the efficiency of a device to its own rates, or to those of the device that it names in
/// `efficiency_of`.
/// @throws InputError if it has neither, or a file is missing
Calibration load_calibration(const Device& device, const std::filesystem::path& folder);

}  // namespace stepcast
