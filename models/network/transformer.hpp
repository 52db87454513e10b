#pragma once

#include <vector>

#include "core/yaml.hpp"
#include "models/network/layer.hpp"

namespace stepcast {

/// A stack of pre-norm transformer blocks as in GPT-2, from embedded tokens {sequence, width} to the loss.
///
/// A block: layer norm, dense to 3 x width, attention, dense, add, layer norm, dense to `expansion` x width,
/// gelu, dense, add. After the blocks: layer norm, dense to the vocabulary (no bias), softmax with
/// cross-entropy. Parameters: layers x ((4 + 2 e) w^2 + (9 + e) w) + 2 w + v w with width w, expansion e,
/// vocabulary v. Source: A. Radford et al., Language models are unsupervised multitask learners, 2019,
/// section 2.3.
struct TransformerStack {
  std::int64_t layers = 1;
  std::int64_t width = 1;
  std::int64_t heads = 1;
  std::int64_t sequence = 1;  ///< tokens in a sample
  std::int64_t vocabulary = 1;
  std::int64_t expansion = 4;  ///< width of the hidden layer of a block, in widths
  bool causal = true;
};

/// Reads `transformer_stack: {layers, width, heads, sequence, vocabulary, expansion: 4, causal: true}`.
TransformerStack read_transformer_stack(const YamlValue& value);

/// The shape of one sample: embedded tokens {sequence, width}.
Shape transformer_input(const TransformerStack& stack);

/// The layers of the stack, the loss last. The input of the first layer is the network's input.
std::vector<Layer> transformer_layers(const TransformerStack& stack);

}  // namespace stepcast
