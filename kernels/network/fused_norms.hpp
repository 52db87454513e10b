#pragma once

#include <vector>

#include "models/network/model.hpp"

namespace stepcast {

/// Layers that a batch norm's kernels can compute with it: a ReLU, and before it the addition of another
/// layer's output. Nothing else reads the output of the norm or of the addition, so neither is stored.
struct FusedNorm {
  std::size_t norm = 0;
  int add = -1;    ///< the addition; -1: the ReLU reads the norm
  int added = -1;  ///< the layer before the norm whose output is added; only with `add`
  std::size_t relu = 0;
};

/// All such groups of a model. A norm without trainable parameters is in none, because layers before which
/// nothing trains have no backward pass.
std::vector<FusedNorm> fused_norms(const Model& model);

}  // namespace stepcast
