#pragma once

#include "core/typed_numbers.hpp"
#include "models/cost/activation_memory.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Memory at one moment of a step as PyTorch or TensorFlow count it, without parameters, gradients and
/// optimizer state.
struct StepMemory {
  Bytes activations;    ///< saved tensors, and outputs that a later layer still reads
  Bytes error_signals;  ///< derivatives of the loss by outputs
  Bytes input;          ///< the mini-batch, which the training loop holds
  Bytes workspace;      ///< of the layer that runs
  Bytes allocator;      ///< rest of the segments of the caching allocator in which they lie
  /// Segments without a tensor, which the allocator has kept from other moments (not part of the total). It
  /// returns them when memory is short.
  Bytes cached;
  Bytes most_allocated;  ///< by tensors at one moment, maybe another one (max_memory_allocated)
  Bytes saved;           ///< activations when the backward pass begins

  Bytes total() const { return activations + error_signals + input + workspace + allocator; }
};

/// The memory at the moment of a step at which the segments in use are largest, when the allocator has seen
/// the step before. The forward pass frees an output as soon as no later layer reads it and the backward pass
/// does not need it. The backward pass frees a saved tensor or an error signal after its last use
/// (docs/explanation/memory.md).
StepMemory peak_of_step(const Model& model, const MemoryOptions& options);

}  // namespace stepcast
