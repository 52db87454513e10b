#pragma once

#include "core/typed_numbers.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Tokens of one sample of a language model, which has attention and reads a sequence of words or of vectors;
/// 0: another network.
std::int64_t tokens_of_sample(const Model& model);

/// Work of the forward and both backward passes of one sample as PaLM counts it: (6 N + 12 L H Q T) T, with N
/// parameters, L attention layers of H heads of Q features, and T tokens; 0 for networks with experts, of
/// which a token uses a part. Megatron counts the products of the layers: training_flops, which is 72 B s L
/// h^2 (1 + s / (6 h)
/// + V / (12 h L)) for a GPT. Both count the whole attention, also below a causal mask, and no recomputation.
/// Sources: A. Chowdhery et al., PaLM, arXiv:2204.02311, appendix B; D. Narayanan et al., Efficient
/// large-scale language model training on GPU clusters using Megatron-LM, SC 2021, section 5.1.
Flops palm_flops(const Model& model);

/// False for a network that `stepcast import` wrote from a profile without shapes: all its layers are
/// measured, and each output is written as one number, because no size is known. Then its memory is not known
/// either.
bool knows_sizes(const Model& model);

}  // namespace stepcast
