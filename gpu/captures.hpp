#pragma once

#include "gpu/rank_options.hpp"
#include "kernels/gpu.hpp"
#include "scenarios/data_files.hpp"
#include "validate/rank_run.hpp"

namespace stepcast {

/// Traces of all networks that a validation's points train, and of a rank's part of those whose samples or
/// layers are cut, by all ranks at once: those that share a GPU share it here as they will when they train.
/// Rank 0 writes them.
void capture_on_gpus(const RankRun& run, const RankOptions& options, const GpuOptions& gpu,
                     const Validation& validation, Library& library);

}  // namespace stepcast
