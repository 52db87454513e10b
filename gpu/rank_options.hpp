#pragma once

#include <string>

#include "validate/gpu_ranks.hpp"
#include "validate/validation.hpp"

namespace stepcast {

/// What one rank of a run on GPUs is told.
struct RankOptions {
  int rank = 0, ranks = 2;
  std::string store, folder, control;
  double patience = 30;  ///< for other ranks [s]
  GpuRanks gpus;         ///< device: that of rank 0
  ValidationOptions validation;
};

/// One rank's part: measure what lies between GPUs, capture traces, wait until the forecast is written, run
/// every point so and so often. Rank 0 writes platform.yaml, the traces and samples.jsonl.
/// @throws InputError, RankLost, and what kernels throw
void run_gpu_rank(const RankOptions& options);

}  // namespace stepcast
