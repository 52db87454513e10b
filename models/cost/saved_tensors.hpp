#pragma once

#include "models/cost/memory_options.hpp"
#include "models/network/layer.hpp"

namespace stepcast {

/// What a layer's backward pass needs, and its forward pass therefore saves.
struct SavedTensors {
  bool input = false;   ///< the layer's inputs; shared with other layers that save them
  bool output = false;  ///< the layer's output; shared as well
  double elements = 0;  ///< private elements of one sample, in the precision of activations
  double bytes = 0;     ///< private bytes of one sample whose size does not depend on the precision
  double fixed = 0;     ///< private bytes that do not depend on the batch
};

/// What PyTorch or TensorFlow saves for a layer. @param in_place  whether the layer overwrites its input
///
/// Source for PyTorch: tools/autograd/derivatives.yaml of pytorch/pytorch (what each backward formula
/// names). Source for TensorFlow: tensorflow/python/ops/nn_grad.py (what each gradient function reads).
/// @throws std::invalid_argument for Framework::lbann, which saves every output
SavedTensors saved_tensors(const Layer& layer, const MemoryOptions& options, bool in_place);

}  // namespace stepcast
