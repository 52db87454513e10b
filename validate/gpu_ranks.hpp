#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "validate/launch.hpp"

namespace stepcast {

extern const std::vector<std::string> kPrecisions;

/// Seconds without a sign of life that ranks on GPUs may take: choosing algorithms for a large network takes
/// a while, and says nothing.
constexpr double kGpuHeartbeat = 120;

/// What the command line says about a GPU and how to compute on it.
struct GpuWords {
  std::string device = "cuda:0", precision = "f32", layout = "nchw";
  std::int64_t workspace_mib = 1024;
};

/// How ranks of a real run use GPUs.
struct GpuRanks {
  GpuWords words = {};           ///< device: of rank 0; the others count up from it
  std::string path = "auto";     ///< of what ranks send: nccl, host, or auto: nccl where each rank has a GPU
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
