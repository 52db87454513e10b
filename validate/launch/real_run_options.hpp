#pragma once

#include <string>

#include "core/cli/command_line.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "validate/launch/gpu_launch.hpp"
#include "validate/launch/launcher.hpp"

namespace stepcast {

/// Options of a real run on any device, which `stepcast validate` and `stepcast-gpu run` share.
struct RealRunOptions {
  ValidationOptions validation;
  int ranks = 2;
  double heartbeat = kHeartbeatTimeout;  ///< [s]
  std::string output = {};
  GpuRanks gpus;
};

/// @param device_help  help text of --device
/// @return the option --ranks
Option add_real_run_options(Command command, RealRunOptions& options, const std::string& device_help);

/// Adds --device, --precision, --layout and --workspace.
void add_gpu_options(Command command, GpuOptionsText& options, const std::string& device_help);
/// Adds --path and --device-file.
void add_gpu_paths(Command command, GpuRanks& gpus);

}  // namespace stepcast
