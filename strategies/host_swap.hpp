#pragma once

#include "models/memory.hpp"
#include "strategies/workload.hpp"

namespace stepcast {

/// Activations that wait in the host's memory for the backward pass.
struct HostSwap {
  BytesPerSecond bandwidth;  ///< of the device's link to the host, each way
  Bytes element;
  MemoryOptions memory;  ///< samples at once, and what overwrites its input
};

/// Makes every forward and backward pass of a layer last as long as the copies that go with it
/// (models/swapped.hpp), if these are longer: they run beside the layer, and the next layer waits for both.
void swap_to_host(const Model& model, const HostSwap& swap, Workload& workload);

}  // namespace stepcast
