#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "models/network/layer.hpp"

namespace stepcast {

/// "aten::relu_" and "ReluBackward0" both become "relu": no namespace, no "Backward" and its number, no
/// underscores, lower case. An operator and its node of the backward pass have the same word.
std::string operator_word(std::string_view name);

/// The kind of an operator of the forward pass. Words are those of layer kinds, with three more:
/// "view" (moves no numbers, or only copies them), "product" (of two computed tensors), "other".
std::string operator_kind(std::string_view name);

/// True if a layer kind can begin with an operator of that kind, and go on with it. Some layers are one
/// operator; attention or GELU written out are several.
bool begins_layer(LayerKind layer, std::string_view operator_kind);
bool continues_layer(LayerKind layer, std::string_view operator_kind);

/// The precision that kernels' names tell: "tf32", "f16", "bf16" or "f32"; empty if the name tells none.
std::string kernel_precision(std::string_view kernel);

/// The pass of a convolution that a kernel's name tells.
enum class ConvolutionPass { data, weights, unknown };
ConvolutionPass convolution_pass(std::string_view kernel);

}  // namespace stepcast
