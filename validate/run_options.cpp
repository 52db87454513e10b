#include "validate/run_options.hpp"

#include <CLI/CLI.hpp>

namespace stepcast {

void add_gpu_words(CLI::App& command, GpuWords& words, const std::string& device_help) {
  command.add_option("--device", words.device, device_help)->capture_default_str();
  command.add_option("--precision", words.precision, "on GPUs: of products and activations")
      ->check(CLI::IsMember(kPrecisions))
      ->capture_default_str();
  command.add_option("--layout", words.layout, "on GPUs: of images")
      ->check(CLI::IsMember({"nchw", "nhwc"}))
      ->capture_default_str();
  command
      .add_option("--workspace", words.workspace_mib,
                  "on GPUs: most that libraries may use beside tensors [MiB]")
      ->check(CLI::Range(32, 1 << 16))
      ->capture_default_str();
}

void add_gpu_paths(CLI::App& command, GpuRanks& gpus) {
  command
      .add_option("--path", gpus.path,
                  "on GPUs: what carries collectives and messages, nccl, host, or auto: nccl where each rank "
                  "has a GPU of its own")
      ->check(CLI::IsMember({"auto", "nccl", "host"}))
      ->capture_default_str();
  command.add_option("--device-file", gpus.device_file,
                     "on GPUs: what models/devices says of the GPU (default: by its name)");
}

void add_real_run_options(CLI::App& command, RealRunOptions& options, const std::string& device_help) {
  command.add_option("scenario", options.validation.scenario, "scenario file")
      ->required()
      ->type_name("SCENARIO.yaml");
  command.add_option("--ranks", options.ranks, "ranks to start, servers included")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  command.add_option("--repeats", options.validation.repeats, "runs of each point, in turn")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command.add_option("-o,--output", options.output, "folder (default results/SCENARIO-NAME)")
      ->type_name("DIR");
  command.add_option("--set", options.validation.settings, "replace a value of the scenario")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command
      .add_option("--heartbeat", options.heartbeat, "seconds without a sign of life after which a rank hangs")
      ->check(CLI::Range(1.0, 3600.0))
      ->capture_default_str();
  add_gpu_words(command, options.gpus.words, device_help);
  add_gpu_paths(command, options.gpus);
}

}  // namespace stepcast
