#pragma once

#include <string>

#include "core/cli/command_line.hpp"
#include "kernels/network/gpu_options.hpp"
#include "validate/launch/real_run_options.hpp"

namespace stepcast {

/// GPU options of the command line and their conversion.
struct DeviceOptions : GpuOptionsText {
  /// @throws InputError for a device that is not cuda:NUMBER
  GpuOptions gpu_options() const;
  /// The options as they are typed, such as " --device cuda:0 --precision f32 --layout nchw".
  std::string command_line() const;
};

void add_device_options(Command command, DeviceOptions& options);

/// Name of the file in models/devices that describes a GPU: "NVIDIA H100 80GB HBM3" -> "h100-sxm".
/// @throws InputError if there is none
std::string device_file_of(const std::string& gpu);

}  // namespace stepcast
