#include "validate/launch/real_run_options.hpp"

namespace stepcast {

void add_gpu_options(Command command, GpuOptionsText& options, const std::string& device_help) {
  command.add_option("--device", options.device, device_help).show_default();
  command
      .add_option("--precision", options.precision, "on GPUs: precision of matrix products and activations")
      .one_of(kPrecisions)
      .show_default();
  command.add_option("--layout", options.layout, "on GPUs: memory layout of images")
      .one_of({"nchw", "nhwc"})
      .show_default();
  command
      .add_option("--workspace", options.workspace_mib, "on GPUs: workspace limit of cuDNN and cuBLAS [MiB]")
      .range(32, 1 << 16)
      .show_default();
  command.add_flag(
      "--no-fusion", options.no_fusion,
      "on GPUs: compute a ReLU after batch norm, and the update of each layer, in kernels of their "
      "own, as PyTorch does");
}

void add_gpu_paths(Command command, GpuRanks& gpus) {
  command
      .add_option(
          "--path", gpus.path,
          "on GPUs: what carries collectives and messages: nccl, host, or auto (nccl if each rank has "
          "a GPU of its own)")
      .one_of({"auto", "nccl", "host"})
      .show_default();
  command.add_option("--device-file", gpus.device_file,
                     "on GPUs: name of the GPU in models/devices (default: by the GPU's name)");
}

Option add_real_run_options(Command command, RealRunOptions& options, const std::string& device_help) {
  command.add_option("scenario", options.validation.scenario, "scenario file")
      .required()
      .type_name("SCENARIO.yaml");
  const Option ranks = command.add_option("--ranks", options.ranks, "ranks to start, servers included")
                           .range(2, 64)
                           .show_default();
  command.add_option("--repeats", options.validation.repeats, "runs of each point, in turn")
      .range(1, 1000)
      .show_default();
  command.add_option("-o,--output", options.output, "folder (default results/SCENARIO-NAME)")
      .type_name("DIR");
  command.add_option("--set", options.validation.settings, "replace a value of the scenario")
      .type_name("KEY=VALUE")
      .one_value();
  command
      .add_option("--heartbeat", options.heartbeat,
                  "seconds without a heartbeat after which a rank counts as hung")
      .range(1.0, 3600.0)
      .show_default();
  add_gpu_options(command, options.gpus.options, device_help);
  add_gpu_paths(command, options.gpus);
  return ranks;
}

}  // namespace stepcast
