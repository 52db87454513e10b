#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace stepcast::cudnn {

/// Spatial sizes extended to three by filling in front.
inline std::array<std::int64_t, 3> last_three(const std::vector<std::int64_t>& sizes, std::int64_t fill) {
  std::array<std::int64_t, 3> result{fill, fill, fill};
  std::copy(sizes.begin(), sizes.end(), result.end() - static_cast<std::ptrdiff_t>(sizes.size()));
  return result;
}

/// Sizes or strides of {n, c, spatial...} as {n, c, d, h, w}, with spatial ones extended by filling in front.
inline std::array<std::int64_t, 5> five(const std::vector<std::int64_t>& values, std::int64_t fill) {
  std::array<std::int64_t, 5> result{values.at(0), values.at(1), fill, fill, fill};
  std::copy(values.begin() + 2, values.end(), result.end() - static_cast<std::ptrdiff_t>(values.size() - 2));
  return result;
}

}  // namespace stepcast::cudnn
