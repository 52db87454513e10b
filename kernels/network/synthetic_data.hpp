#pragma once

#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "kernels/network/backend.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Fills a tensor with values uniform in [-1, 1); element i is drawn with item i of `key`.
void fill_uniform(Tensor& tensor, RandomKey key);

/// Initial values of one parameter in row-major order, a pure function of the seed and the indices of layer
/// and parameter. Weights are uniform with variance 2 / fan-in (K. He et al., "Delving deep into rectifiers",
/// ICCV 2015, section 2.2); weights of recurrent layers and embeddings have variance 1 / (3 row length).
/// Scales and running variances are 1, all other parameters 0.
std::vector<float> initial_values(const std::vector<Layer>& layers, std::size_t layer, std::size_t parameter,
                                  std::uint64_t seed);

/// Fills a network's input with values uniform in [-1, 1), or with row indices if an embedding reads it.
void fill_input(Tensor& input, const Model& model, std::uint64_t seed);

/// Fills the targets of the loss with index `index` in its model: class indices (softmax_cross_entropy), 0 or
/// 1 (sigmoid_cross_entropy), or values uniform in [-1, 1).
void fill_targets(Tensor& targets, const Layer& loss, std::size_t index, std::uint64_t seed);

}  // namespace stepcast
