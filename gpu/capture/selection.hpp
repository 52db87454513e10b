#pragma once

#include <string>
#include <vector>

#include "core/cli/command_line.hpp"
#include "kernels/network/backend.hpp"
#include "models/network/model.hpp"
#include "scenarios/experiment/experiment.hpp"
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

/// Reads a model by its name in models/ or by a path that ends in .yaml. @throws InputError
Model model_of(const std::string& name);

/// Names of all models in models/ that the GPU backend supports; `left_out` gets one line with the reason for
/// each other model.
std::vector<std::string> models_for_gpu(std::vector<std::string>& left_out);

/// Name of a trace that is captured on a GPU, such as "resnet50-b32-tf32-nhwc-gpu".
std::string trace_name(const std::string& model, std::int64_t batch, const std::string& precision,
                       const std::string& layout);

/// Why ranks on GPUs cannot run a point; empty if they can.
std::string unsupported_on_gpus(const Experiment& experiment, int ranks);

}  // namespace stepcast
