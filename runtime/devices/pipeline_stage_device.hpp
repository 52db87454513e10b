#pragma once

#include "runtime/devices/pipeline_stage_chunk.hpp"
#include "runtime/devices/rank_device.hpp"

namespace stepcast {

/// Device of a pipeline stage: it runs the kernels of one stage. Micro-batches pass through each chunk in
/// order, forward and backward, so the n-th forward pass of a chunk in a step, and what it receives and
/// sends, belong to micro-batch n.
/// @param stage  index of the stage
/// @param owned  for each chunk, the stored parameters that it updates; empty: all
std::unique_ptr<RankDevice> pipeline_stage_device(const PipelineStageNetworks& networks,
                                                  const NetworkSharing& sharing, int stage,
                                                  std::vector<std::vector<Slice>> owned = {},
                                                  DeviceLearning learning = {});

}  // namespace stepcast
