#include "validate/launch/gpu_launch.hpp"

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

}  // namespace stepcast
