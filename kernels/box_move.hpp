#pragma once

#include <cstdint>
#include <vector>

namespace stepcast {

/// A box of elements, each side with its own strides [elements], at most five sides: permutations, crops,
/// parts of maps.
struct BoxMove {
  std::vector<std::int64_t> size, from_stride, to_stride;
  std::int64_t from_offset = 0, to_offset = 0;
};

/// Strides of a row-major box.
std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& size);

void move_on_host(const BoxMove& box, const float* from, float* to);

}  // namespace stepcast
