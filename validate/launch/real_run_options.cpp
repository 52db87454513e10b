#include "validate/launch/real_run_options.hpp"

#include <fmt/format.h>

#include "core/error.hpp"

namespace stepcast {

const std::vector<std::string> kPrecisions{"f32", "tf32", "f16", "bf16"};

GpuPlace gpu_place(const std::string& path, int first, int gpus, int rank, int ranks) {
  const int usable = gpus - first;
  if (usable < 1)
    throw InputError(fmt::format("--device cuda:{}: CUDA sees {} GPU{} here", first,
                                 gpus == 0 ? "no" : std::to_string(gpus), gpus == 1 ? "" : "s"));
  const bool own = ranks <= usable;
  if (path == "nccl" && !own) {
    throw InputError(
        fmt::format("--path nccl: NCCL refuses two ranks on one GPU, and there are {} ranks for {} GPU{}; "
                    "--path host lets them share",
                    ranks, usable, usable == 1 ? "" : "s"));
  }
  return {first + rank % usable, own && path != "host"};
}

std::vector<std::vector<std::string>> gpu_rank_commands(const std::filesystem::path& program,
                                                        const GpuRanks& gpus, const RankJob& job,
                                                        const std::filesystem::path& control) {
  const std::filesystem::path store = job.folder / "store";
  std::filesystem::remove_all(store);  // values of an earlier run
  std::vector<std::vector<std::string>> commands;
  for (int rank = 0; rank < job.cluster.ranks; ++rank) {
    commands.push_back({program.string(),  "rank",
                        "--rank",          std::to_string(rank),
                        "--ranks",         std::to_string(job.cluster.ranks),
                        "--store",         "file:" + store.string(),
                        "--folder",        job.folder.string(),
                        "--control",       control.string(),
                        "--stall-timeout", fmt::format("{:g}", job.heartbeat / 2),
                        "--device",        gpus.options.device,
                        "--precision",     gpus.options.precision,
                        "--layout",        gpus.options.layout,
                        "--workspace",     std::to_string(gpus.options.workspace_mib),
                        "--path",          gpus.path});
    if (gpus.options.no_fusion) commands.back().push_back("--no-fusion");
    if (!gpus.device_file.empty())
      commands.back().insert(commands.back().end(), {"--device-file", gpus.device_file});
    commands.back().insert(commands.back().end(), job.arguments.begin(), job.arguments.end());
  }
  return commands;
}

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
