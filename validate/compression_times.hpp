#pragma once

#include "kernels/compression.hpp"
#include "scenarios/data_files.hpp"
#include "validate/rank_run.hpp"
#include "validate/validation.hpp"

namespace stepcast {

/// Kernels that compress gradients, by all ranks at once, on gradients of the model's size; the samples of
/// all ranks are joined. @param beside  a device whose gradients they are; none: the host's own
void capture_compressions(const RankRun& run, const Validation& validation, const ValidationOptions& options,
                          Library& library, const GradientDevice& beside = {});

}  // namespace stepcast
