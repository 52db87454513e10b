#pragma once

#include <vector>

#include "gpu/check/check_layers.hpp"

namespace stepcast {

/// Compares the loss and all gradients of a small transformer in two tensor-parallel shards with those of the
/// whole network on the same backend: the largest difference divided by the largest expected value. Both
/// shards run on this device in lockstep. If the backend refuses a layer, the error is infinite and `array`
/// is the error message.
std::vector<Deviation> check_partitioned_layers(Backend& backend);

}  // namespace stepcast
