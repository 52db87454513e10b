#pragma once

#include <vector>

#include "core/yaml.hpp"
#include "models/network/layer.hpp"

namespace stepcast {

struct LayerList {
  std::vector<Layer> layers;
  std::vector<LayerBlock> blocks;  ///< of a stack, or the repetitions of a block
};

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
  double dropout = 0;  ///< of the attention's softmax, and of the outputs of both halves of a block
};

/// Reads `transformer_stack: {layers, width, heads, sequence, vocabulary, expansion: 4, causal: true,
/// dropout: 0}`.
TransformerStack read_transformer_stack(const YamlValue& value);

/// The shape of one sample: embedded tokens {sequence, width}.
Shape transformer_input(const TransformerStack& stack);

/// The layers of the stack, the loss last. The input of the first layer is the network's input.
LayerList transformer_layers(const TransformerStack& stack);

/// Integers of a YAML value, one for each spatial dimension: `3` for all dimensions, or a list such as `[6,
/// 6, 8]`.
std::vector<std::int64_t> per_dimension(const YamlValue& value, std::size_t dimensions, std::int64_t low);

/// Stride of a window whose YAML gives none.
enum class DefaultStride { one, kernel };

/// Reads `kernel`, `stride` (default: 1 for convolutions, the kernel for pools) and `pad` (default 0; an
/// integer, a list, `same`, or `{before: [...], after: [...]}`) of a window over `input` {channels,
/// sizes...}.
///
/// `same` pads so that the output has ceil(size / stride) positions. An odd element is padded after, as in
/// TensorFlow.
Window read_window(const YamlMap& yaml, const Shape& input, DefaultStride default_stride);

/// Completes a layer, whose name, kind, inputs and `input` shape are set, from the keys of its kind.
/// @throws InputError for unknown keys and for shapes that do not fit
void read_layer(const YamlValue& value, Layer& layer);

/// Refuses an array of more than 1e15 elements, so that products of sizes fit 64 bits.
void check_size(const YamlValue& value, const Shape& shape);

/// Reads the list `layers` of a network. An item is a layer, or a block of layers that is repeated:
/// `{repeat: 32, name: block, layers: [...]}`. The layers of repetition I are called `blockI_NAME`. Inside a
/// block, `inputs` may name layers of the same repetition without this prefix, `previous` (the layer before
/// the repetition), and any layer above the block.
/// @param input  shape of one sample
/// @throws InputError
LayerList read_layers(const YamlValue& list, const Shape& input);

}  // namespace stepcast
