#pragma once

#include <string>

#include "validate/gpu_ranks.hpp"
#include "validate/validation.hpp"

namespace CLI {
class App;
}

namespace stepcast {

/// What a run for real is asked for, wherever its ranks compute: `stepcast validate` and `stepcast-gpu run`.
struct RealRunOptions {
  ValidationOptions validation;
  int ranks = 2;
  double heartbeat = 30;  ///< [s]
  std::string output = {};
  GpuRanks gpus;
};

/// @param device_help  what --device may be
void add_real_run_options(CLI::App& command, RealRunOptions& options, const std::string& device_help);

/// --device, --precision, --layout and --workspace.
void add_gpu_words(CLI::App& command, GpuWords& words, const std::string& device_help);
/// --path and --device-file.
void add_gpu_paths(CLI::App& command, GpuRanks& gpus);

}  // namespace stepcast
