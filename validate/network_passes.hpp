#pragma once

#include "kernels/network.hpp"
#include "strategies/workload.hpp"

namespace stepcast {

/// Runs the passes of these layers of the model, those of them that the network has.
void run_layers(Network& network, Work pass, LayerRange layers);

}  // namespace stepcast
