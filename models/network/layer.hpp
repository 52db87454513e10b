#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/keys.hpp"

namespace stepcast {

/// Shape of one sample, batch left out: {channels, height, width}, {channels, depth, height, width},
/// {time, features} or {features}.
using Shape = std::vector<std::int64_t>;

enum class LayerKind {
  convolution,        ///< 2-D or 3-D cross-correlation, zero padding
  locally_connected,  ///< a convolution whose filters are not shared between positions
  dense,              ///< y = W x + b over the last dimension
  embedding,          ///< a row of a table for every token
  batch_norm,
  layer_norm,  ///< over the last dimension
  rms_norm,    ///< layer norm without mean and shift
  scale,       ///< a trained factor for each feature of the last dimension (LayerScale)
  relu,
  leaky_relu,
  sigmoid,
  tanh,
  elu,
  gelu,
  silu,
  swiglu,  ///< silu of the first half of the features, times the second half
  max_pool,
  average_pool,
  slice,        ///< some rows of the first dimension
  add,          ///< sum of two or more inputs of equal shape
  concatenate,  ///< two or more inputs, one after the other along the first dimension (channels)
  up_sample,    ///< nearest neighbour, an integer factor for each dimension
  reshape,      ///< no work: flatten, permute, crop to a shape of as many elements
  dropout,
  lstm,  ///< no peepholes
  gru,
  rotary_embedding,       ///< rotates queries and keys by their positions; output as attention's input
  attention,              ///< multi-head scaled dot-product core, without its projections
  state_space,            ///< convolution, scan, gate and norm of a Mamba 2 block, without its projections
  experts,                ///< a router, and SwiGLU blocks of which each token visits a few
  position_embedding,     ///< adds a trained row for every position
  class_token,            ///< puts a trained token before the others
  first_token,            ///< {time, features} -> {features}
  softmax_cross_entropy,  ///< the loss; over the last dimension
  sigmoid_cross_entropy,
  mean_squared_error,
  measured,  ///< only its trace says what it does; it may read several layers, and cannot be partitioned
};

/// Sliding window of convolutions and pools, with one entry for each spatial dimension.
struct Window {
  std::vector<std::int64_t> kernel, stride, pad_before, pad_after;
};

/// One array of a layer; `elements` is the product of its shape.
struct ParameterTensor {
  std::string name;  ///< "weight", "bias", "scale", "shift", "running_mean" ...
  Shape shape;
  bool trainable = true;  ///< false: running statistics, not in the gradient

  std::int64_t elements() const;
};

/// Stands in Layer::inputs for the input of the network.
inline constexpr int kNetworkInput = -1;

/// Layers `first` to `last` - 1, which a network repeats.
struct LayerBlock {
  int first = 0, last = 0;

  bool operator==(const LayerBlock&) const = default;
};

/// One node of the network's graph, with its shapes. Plain data.
struct Layer {
  std::string name;
  LayerKind kind{};
  std::vector<int> inputs;  ///< indices of earlier layers, or kNetworkInput
  Shape input;              ///< shape of the first input
  Shape output;
  Window window;  ///< convolution, locally_connected, pools; `kernel` alone is the factor of up_sample
  /// convolution: parts into which channels and filters are divided; each part of the filters reads one part
  /// of the channels
  std::int64_t groups = 1;  ///< state_space: groups of heads that share what writes and reads the states
  /// lstm, gru: cells per direction; experts: hidden units of one expert; state_space: states of a feature
  std::int64_t hidden = 0;
  std::int64_t heads = 0;     ///< attention, rotary_embedding: heads of the queries
  std::int64_t kv_heads = 0;  ///< heads of keys and of values, if fewer (grouped-query attention); 0: as many
  /// attention, rotary_embedding: features of a head's values, if not those of its queries and keys; 0: the
  /// same
  std::int64_t value_width = 0;
  /// rotary_embedding of three inputs: features of a head's keys that are the same for all heads
  std::int64_t shared_key = 0;
  /// attention: tokens that each token attends to, if not those of its own input: those of a window or of
  /// another sequence; state_space: tokens of a chunk; 0: all tokens of the input
  std::int64_t keys = 0;
  /// attention: rows of the trained table whose values are added to the scores; 0: another layer's table;
  /// -1: nothing is added
  std::int64_t position_bias = -1;
  std::int64_t experts = 0;    ///< experts
  std::int64_t top = 0;        ///< experts: experts that process a token
  bool causal = false;         ///< attention: a token attends only to itself and earlier tokens
  bool bidirectional = false;  ///< lstm, gru: outputs of both directions, concatenated
  double coefficient = 0;      ///< leaky_relu: slope; elu: alpha; dropout, attention: share of dropped
                               ///< elements; experts: rows that are processed / (tokens x top)
  int weight_of = -1;          ///< dense: the earlier layer that owns its weight (tied weights); -1: itself
  std::vector<ParameterTensor> parameters;
};

/// The word for the kind in YAML files, such as "convolution".
const char* to_string(LayerKind kind);

/// Number of elements: the product of the sizes.
std::int64_t elements(const Shape& shape);

/// The shape as text, such as "64 x 112 x 112".
std::string to_string(const Shape& shape);

/// All words of the YAML key `kind`, in the order of LayerKind.
std::vector<std::string> layer_kind_words();

/// True if the kind is a loss. A loss ends a network: its output is a single number that no layer reads.
bool is_loss(LayerKind kind);
/// True if each filter of a convolution reads one channel only.
bool is_depthwise(const Layer& layer);

// Each function below completes a layer whose `kind` and `input` are set: its output shape and parameters.

/// Dense layer: input {..., features} -> {..., units}; weight {units, features}, bias {units}.
void complete_dense(std::int64_t units, bool bias, Layer& layer);

/// Convolution: filters {filters, channels / groups, kernel...} shared by all positions. Needs `window` and
/// `groups`.
void complete_convolution(std::int64_t filters, bool bias, Layer& layer);

/// Locally connected layer: every position has its own filters, {positions..., filters, channels, kernel...}.
/// Needs `window`.
void complete_locally_connected(std::int64_t filters, bool bias, Layer& layer);

/// Batch norm: trainable scale and shift, and running mean and variance (not trainable), for each channel.
void complete_batch_norm(Layer& layer);

/// Layer norm: scale and shift over the last dimension, unless it is not affine.
void complete_layer_norm(Layer& layer, bool affine = true);

/// Scale: a factor for each feature of the last dimension.
void complete_scale(Layer& layer);

/// RMS norm: scale over the last dimension.
void complete_rms_norm(Layer& layer);

/// LSTM (4 gates) or GRU (3 gates). Needs `hidden`, `bidirectional`. Each direction has weights
/// {gates, hidden, features} and {gates, hidden, hidden} and one bias {gates, hidden}.
/// @param whole_sequence  true: output {time, directions x hidden}; false: the output of the last time step
void complete_recurrent(bool whole_sequence, Layer& layer);

/// Number of heads side by side in the first input of attention: those of queries, keys and values, or of
/// queries alone, if it has three inputs.
std::int64_t heads_of_input(const Layer& layer);

/// Features of the queries of all heads of attention. Its keys have as many in a head.
std::int64_t query_features(const Layer& attention);

/// Tokens that each token of attention attends to.
std::int64_t attended_tokens(const Layer& layer);

/// Attention: input {time, (heads + kv_heads) x head + kv_heads x value} -> {time, heads x value}; with three
/// inputs, queries {time, heads x head}, keys {keys, kv_heads x head} and values {keys, kv_heads x value}. A
/// table of biases {position_bias, heads}. Needs `inputs`, `heads`, `kv_heads`, `value_width`,
/// `position_bias`.
void complete_attention(Layer& layer);

/// Rotary embedding of three inputs, multi-head latent attention: queries {time, heads x head}, keys without
/// their rotated part and values {time, heads x (head - shared_key + value_width)}, and that part of the
/// keys, one for all heads, {time, shared_key} -> attention's input {time, heads x (2 head + value_width)}.
/// Needs `heads`, `value_width`. Source: DeepSeek-AI, "DeepSeek-V2", arXiv:2405.04434, section 2.1.
void complete_latent_rotary(std::int64_t shared_key, Layer& layer);

/// Experts: input {time, features} -> the same. A router {experts, features}, and for each expert the weights
/// of gate and hidden units {2 x hidden, features} and of the output {features, hidden}; no biases. Needs
/// `hidden`, `experts`, `top`. Source: A. Q. Jiang et al., "Mixtral of experts", arXiv:2401.04088, section 2.
void complete_experts(Layer& layer);

/// State space: input {time, 2 x inner + 2 x groups x hidden + heads} -> {time, inner}: gate, values, what
/// writes and reads the states, and steps. A depthwise convolution of `window.kernel` tokens over values and
/// what writes and reads; for each head a decay, a skip and a bias of the steps; the scale of a norm. Needs
/// `heads`, `groups`, `hidden`, `window`. Source: T. Dao, A. Gu, "Transformers are SSMs", arXiv:2405.21060,
/// section 7; Mamba2Mixer of Hugging Face's transformers.
void complete_state_space(bool bias, Layer& layer);

/// Rows that the experts process for one sample: tokens x top, times the padding of their capacity.
double expert_rows(const Layer& layer);

/// Position embedding: input {time, features} -> the same; a table {rows, features}, trained or not.
void complete_position_embedding(std::int64_t rows, Layer& layer, bool trained = true);

/// Class token: input {time, features} -> {time + 1, features}; the token {features}.
/// @param unused  further tokens that are held and not trained
void complete_class_token(std::int64_t unused, Layer& layer);

/// Concatenation of inputs that differ only in their first dimension.
/// @param first_dimensions  sum of the first dimensions of all inputs
void complete_concatenate(std::int64_t first_dimensions, Layer& layer);

/// Output shape of a window over `input` {channels, sizes...}: {channels, (size + pads - kernel) / stride + 1
/// ...}.
Shape window_output(std::int64_t channels, const Shape& input, const Window& window);

// The keys of a network file (docs/reference/networks.md). The readers of this folder use these tables.
const Keys& model_keys();
const Keys& layer_item_keys();     ///< of a layer of any kind, or of a block that is repeated
const Keys& network_layer_keys();  ///< of a layer of any kind; keys_of_kind gives those of one
const Keys& repeat_keys();         ///< of a block that is repeated
const Keys& pad_keys();
const Keys& transformer_stack_keys();

}  // namespace stepcast
