#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kernels/gpu.hpp"

namespace CLI {
class App;
}

namespace stepcast {

/// What the command line says about the GPU and how to compute on it.
struct DeviceOptions {
  std::string device = "cuda:0", precision = "f32", layout = "nchw";
  std::int64_t workspace_mib = 1024;

  /// @throws InputError for a device that cannot be one
  GpuOptions read() const;
  /// As typed: " --device cuda:0 --precision f32 --layout nchw".
  std::string text() const;
};

void add_device_options(CLI::App& command, DeviceOptions& options);

extern const std::vector<std::string> kPrecisions;

/// "NVIDIA H100 80GB HBM3" -> "h100-sxm": the file of models/devices that says what such a GPU can do.
/// @throws InputError where there is none
std::string device_file_of(const std::string& gpu);

}  // namespace stepcast
