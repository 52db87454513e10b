#pragma once

#include <string>

#include "kernels/gpu.hpp"
#include "validate/gpu_ranks.hpp"

namespace CLI {
class App;
}

namespace stepcast {

/// GpuWords, understood.
struct DeviceOptions : GpuWords {
  /// @throws InputError for a device that cannot be one
  GpuOptions read() const;
  /// As typed: " --device cuda:0 --precision f32 --layout nchw".
  std::string text() const;
};

void add_device_options(CLI::App& command, DeviceOptions& options);

/// "NVIDIA H100 80GB HBM3" -> "h100-sxm": the file of models/devices that says what such a GPU can do.
/// @throws InputError where there is none
std::string device_file_of(const std::string& gpu);

}  // namespace stepcast
