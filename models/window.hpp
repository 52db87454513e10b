#pragma once

#include "core/yaml.hpp"
#include "models/layer.hpp"

namespace stepcast {

/// Integers of a YAML value, one a spatial dimension: `3` for all of them, or a list such as `[6, 6, 8]`.
std::vector<std::int64_t> per_dimension(const YamlValue& value, std::size_t dimensions, std::int64_t low);

enum class DefaultStride { one, kernel };

/// Reads `kernel`, `stride` (default: 1 for convolutions, the kernel for pools) and `pad` (default 0; an
/// integer, a list, `same`, or `{before: [...], after: [...]}`) of a window over `input` {channels,
/// sizes...}.
///
/// `same` pads so that the output has ceil(size / stride) positions, the odd element after, as TensorFlow
/// does.
Window read_window(const YamlMap& yaml, const Shape& input, DefaultStride default_stride);

}  // namespace stepcast
