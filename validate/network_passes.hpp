#pragma once

#include "kernels/network.hpp"
#include "strategies/workload.hpp"

namespace stepcast {

/// Runs the passes of these layers of the model, those of them that the network has.
void run_layers(Network& network, Work pass, LayerRange layers);

/// Runs pieces of layers (strategies/pieces.cpp), forward or backward, of a network whose layers ranks may
/// share: where error signals are summed, gradients of weights come with the piece beside that sum.
void run_pieces(Network& network, Work pass, LayerRange pieces);

}  // namespace stepcast
