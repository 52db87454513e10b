#pragma once

#include "validate/rank_device.hpp"
#include "validate/stage_networks.hpp"

namespace stepcast {

/// Runs the kernels of one stage. Micro-batches go through each chunk in order, forward as well as backward,
/// so the n-th forward turn of a chunk in a step, what came for it and what is sent after it are those of
/// micro-batch n.
/// @param stages  of the model; this is number `stage`
/// @param owned   of each chunk: stored parameters that it updates; empty: all
std::unique_ptr<RankDevice> stage_device(const StageNetworks& networks, const NetworkSharing& sharing,
                                         int stage, std::vector<std::vector<Slice>> owned = {},
                                         DeviceLearning learning = {});

}  // namespace stepcast
