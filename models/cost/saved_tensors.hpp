#pragma once

#include <vector>

#include "models/cost/activation_memory.hpp"
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

/// True if PyTorch's autocast chooses the precision of each operator.
bool autocast(const MemoryOptions& options);

/// Bytes of an element of each layer's output, under autocast those of autocast_widths.
std::vector<double> output_widths(const Model& model, const MemoryOptions& options);

/// A layer whose input autocast casts saves the cast copy, not its input. Every reader makes its own copy:
/// autocast caches casts of parameters only. @param input_width  bytes of an element of the layer's input
void save_casts(const Layer& layer, double input_width, SavedTensors& saved);

}  // namespace stepcast
