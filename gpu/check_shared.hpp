#pragma once

#include <vector>

#include "gpu/check_layers.hpp"

namespace stepcast {

/// The loss and all gradients of a small transformer whose layers two share, both on this device and in
/// lockstep, against those of the whole network on the same backend: the largest difference over the largest
/// expected value. What the backend refuses has an infinite error; its array is the refusal.
std::vector<Deviation> check_shared_layers(Backend& backend);

}  // namespace stepcast
