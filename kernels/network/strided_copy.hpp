#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

/// A copy of a box of elements with at most five dimensions and separate strides [elements] in source and
/// target: permutations, crops, parts of maps.
struct BoxMove {
  std::vector<std::int64_t> size, from_stride, to_stride;
  std::int64_t from_offset = 0, to_offset = 0;
};

/// Strides of a row-major box.
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& size);

/// Copies a box of elements in the host's memory.
void move_on_host(const BoxMove& box, const float* from, float* to);

}  // namespace stepcast
