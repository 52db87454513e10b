#pragma once

#include "core/yaml.hpp"
#include "models/network/layer.hpp"

namespace stepcast {

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

}  // namespace stepcast
