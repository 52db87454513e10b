#pragma once

#include <optional>
#include <string>

#include "models/network/layer.hpp"
#include "models/pytorch_profile/profile.hpp"

namespace stepcast {

/// A layer of a known kind, as an item of a network file.
struct OperatorLayer {
  LayerKind kind{};
  std::string text;          ///< `kind` and its keys, such as "kind: dense, units: 10, bias: true"
  Shape output;              ///< of one sample
  bool needs_shape = false;  ///< it reads a shape, not only as many numbers
};

/// The shape of one sample of a recorded shape: its first size is the batch, or a multiple of it.
/// {1} for an empty shape or one that does not hold whole samples.
Shape sample_shape(const Shape& recorded, std::int64_t batch);

/// The recorded shape of the operator's input, with the batch; empty if it is not known.
Shape input_shape(const NetworkOperator& one);

/// Name of an operator's layer: "aten::max_pool2d" gives "max_pool2d".
std::string layer_name(const NetworkOperator& one);

/// The layer of an operator, if its shapes say all about it and its trained arrays are those of the layer.
/// @param in   shape of one sample of the input
/// @param out  of the output
std::optional<OperatorLayer> known_layer(const NetworkOperator& one, const Shape& in, const Shape& out);

}  // namespace stepcast
