#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "validate/launch.hpp"

namespace stepcast {

/// How ranks of a real run use GPUs, in the words of the command line.
struct GpuRanks {
  std::string device = "cuda:0";  ///< of rank 0; the others count up from it
  std::string precision = "f32", layout = "nchw";
  std::int64_t workspace_mib = 1024;
  std::string path = "auto";     ///< of collectives: nccl, host, or auto: nccl where each rank has a GPU
  std::string device_file = {};  ///< of models/devices; empty: by the GPU's name
};

/// The GPU of a rank, and whether NCCL joins the ranks.
struct GpuPlace {
  int device = 0;
  bool nccl = false;
};

/// @param gpus  that CUDA sees; ranks beyond the last one start again at the first of the run
/// @throws InputError where two ranks of a GPU are to use NCCL, which refuses that
GpuPlace gpu_place(const std::string& path, int first, int gpus, int rank, int ranks);

/// Command lines of `stepcast-gpu rank`, one a rank, which leave each other words in a folder of the job's.
std::vector<std::vector<std::string>> gpu_rank_commands(const std::filesystem::path& program,
                                                        const GpuRanks& gpus, const RankJob& job,
                                                        const std::filesystem::path& control);

}  // namespace stepcast
