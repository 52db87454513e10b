#pragma once

#include <cstdint>
#include <string>
#include <vector>

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
  relu,
  leaky_relu,
  sigmoid,
  tanh,
  elu,
  gelu,
  max_pool,
  average_pool,
  add,        ///< sum of two or more equal shapes
  up_sample,  ///< nearest neighbour, integer factor a dimension
  reshape,    ///< no work: flatten, permute, crop to a shape of as many elements
  dropout,
  lstm,  ///< no peepholes
  gru,
  attention,  ///< multi-head scaled dot-product core, without its projections; input {time, 3 x width}
  softmax_cross_entropy,  ///< the loss; over the last dimension
  sigmoid_cross_entropy,
  mean_squared_error,
};

/// Sliding window of convolutions and pools, one entry a spatial dimension.
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

/// One node of the network's graph, with shapes worked out. Plain data.
struct Layer {
  std::string name;
  LayerKind kind{};
  std::vector<int> inputs;  ///< indices of earlier layers; -1 is the network's input
  Shape input;              ///< of the first input
  Shape output;
  Window window;  ///< convolution, locally_connected, pools; `kernel` alone is the factor of up_sample
  std::int64_t hidden = 0;     ///< lstm, gru: cells a direction; layers above: unused
  std::int64_t heads = 0;      ///< attention
  bool causal = false;         ///< attention: a token sees itself and earlier ones only
  bool bidirectional = false;  ///< lstm, gru: outputs of both directions side by side
  double coefficient = 0;      ///< leaky_relu: slope; elu: alpha; dropout: share dropped
  std::vector<ParameterTensor> parameters;
};

/// "convolution", "dense" ...: the word in the YAML file.
const char* to_string(LayerKind kind);

}  // namespace stepcast
