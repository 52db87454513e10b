#pragma once

#include <string>

#include "core/typed_numbers.hpp"
#include "models/cost/device.hpp"
#include "models/cost/memory_options.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Memory of one device during training.
struct Memory {
  Bytes weights;  ///< includes running statistics, and the master copy of mixed precision
  Bytes gradients;
  Bytes optimizer_state;
  Bytes activations;    ///< outputs of all layers kept for the backward pass
  Bytes error_signals;  ///< derivatives of the loss with respect to outputs
  Bytes input;          ///< one mini-batch
  Bytes workspace;
  Bytes gathered;   ///< gathered parameters of the largest layer (ZeRO stage 3)
  Bytes buckets;    ///< copies of the gradients in the buckets of DistributedDataParallel
  Bytes allocator;  ///< reserved by the caching allocator beyond the tensors
  Bytes swapped;    ///< activations in host memory, not part of the total

  Bytes total() const;
};

/// Memory that training the model takes on each device.
Memory training_memory(const Model& model, const MemoryOptions& options);

/// True if the total and a margin fit into the usable memory of the device.
/// @param margin  share of the total added for fragmentation and small buffers
bool fits(const Memory& memory, const Device& device, double margin = 0);

/// The reason why the memory does not fit: "needs 17.1 GB a device, 16.5 GB usable: 0.6 GB too much;
/// activations 8.4 GB, ...". Empty if it fits. Names the parts of at least 1 % of the total, the largest
/// first.
std::string why_not(const Memory& memory, const Device& device, double margin = 0);

}  // namespace stepcast
