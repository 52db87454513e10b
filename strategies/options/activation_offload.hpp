#pragma once

#include "models/cost/memory.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Activations that are kept in the host's memory until the backward pass.
struct ActivationOffload {
  BytesPerSecond bandwidth;  ///< bandwidth of the device's link to the host, in each direction
  Bytes element;             ///< size of an element
  MemoryOptions memory;      ///< samples at once, and which layers overwrite their input
};

/// Makes every forward and backward pass of a layer last as long as its copies
/// (models/cost/activation_memory.hpp), if these take longer. Copies run beside the layer, and the next layer
/// waits for both.
void swap_to_host(const Model& model, const ActivationOffload& swap, Workload& workload);

}  // namespace stepcast
