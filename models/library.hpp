#pragma once

#include <filesystem>

#include "models/calibrate.hpp"

namespace stepcast {

/// Reads `FOLDER/NAME.yaml`, where FOLDER is `models/` of the source tree or an installed copy. Throws
/// InputError.
Model load_model(const std::filesystem::path& folder, const std::string& name);

/// Reads `FOLDER/devices/NAME.yaml`. Throws InputError.
Device load_device(const std::filesystem::path& folder, const std::string& name);

/// Calibrates a device on its own rates, or on those of the device that it names in `efficiency_of`.
/// @throws InputError if it has neither, or a file is missing
Calibration load_calibration(const Device& device, const std::filesystem::path& folder);

}  // namespace stepcast
