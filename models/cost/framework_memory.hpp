#pragma once

#include "core/units.hpp"
#include "models/cost/memory_options.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Memory of one moment of a step as PyTorch or TensorFlow count it. Parameters, gradients and optimizer
/// state are not part of it.
struct StepMemory {
  Bytes activations;    ///< saved tensors, and outputs that a later layer still reads
  Bytes error_signals;  ///< derivatives of the loss by outputs
  Bytes input;          ///< the mini-batch, which the training loop holds
  Bytes workspace;      ///< of the layer that runs
  Bytes allocator;      ///< what the caching allocator reserves beyond the tensors

  Bytes total() const { return activations + error_signals + input + workspace + allocator; }
};

/// The largest moment of a step: of a walk over the forward pass, in which outputs are freed that nothing
/// reads or has saved, and over the backward pass, in which saved tensors and error signals are freed after
/// their last use (docs/explanation/memory.md).
StepMemory peak_of_step(const Model& model, const MemoryOptions& options);

/// What the caching allocator of PyTorch takes for one tensor: 512 B or a multiple of it.
/// Source: c10/cuda/CUDACachingAllocator.cpp of pytorch/pytorch, kMinBlockSize.
Bytes allocated_block(Bytes tensor);

}  // namespace stepcast
