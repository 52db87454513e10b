#pragma once

#include <vector>

#include "kernels/network.hpp"

namespace stepcast {

/// All trainable arrays of a network as they lie in memory, the host's or a device's, when the work that the
/// backend was given is done.
std::vector<float> stored_values(const Network& network);
/// @param values  as many
void store_values(const float* values, Network& network);

}  // namespace stepcast
