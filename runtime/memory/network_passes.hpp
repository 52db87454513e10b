#pragma once

#include "kernels/network/network.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Runs a pass of the layers in this range, of those that the network has.
void run_layers(Network& network, Work pass, LayerRange layers);

/// Runs segments of layers (strategies/model_parallel/layer_segments.hpp), forward or backward, of a network
/// whose layers may be tensor-parallel. If a layer's error signals are summed over ranks, its weight
/// gradients are computed in the segment that overlaps with this sum.
void run_segments(Network& network, Work pass, LayerRange segments);

}  // namespace stepcast
