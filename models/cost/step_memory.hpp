#pragma once

#include <vector>

#include "core/typed_numbers.hpp"
#include "models/cost/allocator/caching_allocator.hpp"
#include "models/cost/memory_options.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// The tensors that a layer's forward pass saves because its backward pass needs them.
struct SavedTensors {
  bool input = false;   ///< the layer's inputs; shared with other layers that save them
  bool output = false;  ///< the layer's output; shared as well
  // Tensors that only this layer saves, one entry for each:
  std::vector<double> elements = {};  ///< elements of one sample, in the precision of activations
  std::vector<double> bytes = {};     ///< bytes of one sample, where they do not depend on the precision
  std::vector<double> fixed = {};     ///< bytes that do not depend on the batch
};

/// The tensors that PyTorch or TensorFlow saves for a layer. @param in_place  whether the layer overwrites
/// its input
///
/// Source for PyTorch: tools/autograd/derivatives.yaml of pytorch/pytorch (what each backward formula
/// names). Source for TensorFlow: tensorflow/python/ops/nn_grad.py (what each gradient function reads).
/// @throws std::invalid_argument for Framework::lbann, which saves every output
SavedTensors saved_tensors(const Layer& layer, const MemoryOptions& options, bool in_place);

/// Workspace [B] of the kernel library for a layer and a number of samples (docs/explanation/memory.md).
double kernel_workspace(const Layer& layer, const MemoryOptions& options, double samples);

/// True if PyTorch's autocast chooses the precision of each operator.
bool autocast(const MemoryOptions& options);

/// Bytes of an element of each layer's output, under autocast those of autocast_widths.
std::vector<double> output_widths(const Model& model, const MemoryOptions& options);

/// A layer whose input autocast casts saves the cast copy, not its input. Every reader makes its own copy:
/// autocast caches casts of parameters only. @param input_width  bytes of an element of the layer's input
void save_casts(const Layer& layer, double input_width, SavedTensors& saved);

/// Copies of the trained parameters that an optimizer keeps.
double optimizer_copies(MemoryOptions::OptimizerState optimizer);

/// The model states of ZeRO's paper (Rajbhandari et al. 2020): parameters, their gradients and the
/// optimizer's state. They lie in the segments of the caching allocator beside the activations of a step.
/// PyTorch allocates a gradient in the backward pass of its layer and frees it before the next step
/// (zero_grad sets it to none); it allocates the optimizer's state after the first step, in segments whose
/// tensors that step has freed. Later steps then ask for other segments in their place. Source:
/// torch/optim/{optimizer,adam,sgd}.py of pytorch/pytorch. With ZeRO, parameters of 2 B (whose fp32 gradients
/// stay) or another framework than PyTorch nothing is allocated.
class ModelStates {
 public:
  /// Allocates the parameters. The arguments must outlive this.
  ModelStates(const Model& model, const MemoryOptions& options, CachingAllocator& allocator);

  void run_forward(std::size_t layer);   ///< autocast casts the layer's parameters to 2 B
  void run_backward(std::size_t layer);  ///< makes the layer's gradients in fp32, and frees those casts
  void end_step();                       ///< makes the optimizer's state once, and frees the gradients
  Bytes bytes() const { return bytes_; }

 private:
  using Block = CachingAllocator::Block;

  Block allocate(double bytes);
  void free(Block block, double bytes);

  const Model& model_;
  const MemoryOptions& options_;
  CachingAllocator& allocator_;
  bool counts_;
  bool has_state_ = false;
  Bytes bytes_;
  std::vector<std::vector<Block>> gradients_, casts_;  ///< of each layer, one for each trained parameter
};

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
