#pragma once

#include <vector>

#include "core/units.hpp"
#include "models/model.hpp"

namespace stepcast {

/// Work and traffic of one pass of one layer.
///
/// Only products count as work: convolutions, locally connected, dense and recurrent layers, attention. A
/// multiply-add is two flop, padding counts as work, biases do not. Element-wise layers, norms and pools cost
/// their traffic.
struct PassCost {
  Flops flops;             ///< a sample
  double activations = 0;  ///< elements of activations and error signals read and written, a sample
  double parameters = 0;   ///< elements of parameters, gradients and optimizer state read and written, a step
  int kernels = 0;         ///< launched one after another; 0: the layer has no such pass

  /// @param element  size of one element
  Bytes bytes(std::int64_t batch, Bytes element) const;
};

/// Where a library computes both gradients in one call (norms, recurrent layers), that call is
/// `backward_data`, or `backward_weights` if nothing below has parameters. `update` is stochastic gradient
/// descent with momentum.
struct LayerCost {
  PassCost forward, backward_data, backward_weights, update;
};

/// One entry a layer.
std::vector<LayerCost> layer_costs(const Model& model);

/// Sum over all layers, one sample.
Flops forward_flops(const Model& model);
/// Forward and both backward passes, one sample: a little less than three times forward, as first layers have
/// no backward-data pass.
Flops training_flops(const Model& model);

/// Elements that the backward pass needs beside inputs and outputs: gates of recurrent layers (LSTM: 4 gates
/// and the cell; GRU: 3 gates and the gated state), scores of attention. One sample.
double internal_elements(const Layer& layer);

}  // namespace stepcast
