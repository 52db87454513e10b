#pragma once

#include "core/random.hpp"
#include "kernels/network.hpp"

namespace stepcast {

/// Uniform in [-1, 1); element i has item i of `key`.
void fill_uniform(Tensor& tensor, RandomKey key);

/// Initial parameters, each a pure function of the seed and its place. Weights are uniform with variance 2 /
/// fan-in (K. He et al., "Delving deep into rectifiers", ICCV 2015, section 2.2), of recurrent layers and
/// embeddings with variance 1 / (3 row length); scales and running variances 1, everything else 0. A part of
/// shared layers gets its part of what the whole network would.
void fill_parameters(Network& network, std::uint64_t seed);

/// Input and targets, each a pure function of the seed and its place. Inputs are uniform in [-1, 1), or row
/// indices where an embedding reads them; targets are classes, 0 or 1 (sigmoid_cross_entropy), or uniform in
/// [-1, 1).
void fill_with_synthetic_data(Network& network, std::uint64_t seed);

}  // namespace stepcast
