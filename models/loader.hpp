#pragma once

#include <filesystem>

#include "models/layer_times/roofline_calibration.hpp"

namespace stepcast {

/// Reads `FOLDER/NAME.yaml`, where FOLDER is `models/` of the source tree or an installed copy. @throws
/// InputError
Model load_model(const std::filesystem::path& folder, const std::string& name);

/// Reads `FOLDER/devices/NAME.yaml`. @throws InputError
Device load_device(const std::filesystem::path& folder, const std::string& name);

/// Fits the efficiency of a device to its own rates, or to those of the device that it names in
/// `efficiency_of`.
/// @throws InputError if it has neither, or a file is missing
Calibration load_calibration(const Device& device, const std::filesystem::path& folder);

}  // namespace stepcast
