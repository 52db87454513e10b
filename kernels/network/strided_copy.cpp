#include "kernels/network/strided_copy.hpp"

#include <algorithm>

namespace stepcast {

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& size) {
  std::vector<std::int64_t> strides(size.size(), 1);
  for (std::size_t i = size.size(); i-- > 1;) strides[i - 1] = strides[i] * size[i];
  return strides;
}

void move_on_host(const BoxMove& box, const float* from, float* to) {
  if (std::ranges::find(box.size, 0) != box.size.end()) return;
  std::vector<std::int64_t> at(box.size.size(), 0);
  while (true) {
    std::int64_t source = box.from_offset, target = box.to_offset;
    for (std::size_t i = 0; i < at.size(); ++i) {
      source += at[i] * box.from_stride[i];
      target += at[i] * box.to_stride[i];
    }
    to[target] = from[source];
    std::size_t i = at.size();
    while (i > 0 && ++at[i - 1] == box.size[i - 1]) at[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace stepcast
