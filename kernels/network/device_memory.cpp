#include "kernels/network/device_memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace stepcast {

std::shared_ptr<float> allocate_floats(std::size_t elements) {
  constexpr std::size_t kHugePage = 2u << 20;
  const std::size_t bytes = (elements == 0 ? 1 : elements) * sizeof(float);
  const std::size_t alignment = bytes >= 2 * kHugePage ? kHugePage : 64;
  const std::size_t rounded = (bytes + alignment - 1) / alignment * alignment;
  void* memory = std::aligned_alloc(alignment, rounded);
  if (memory == nullptr) throw std::bad_alloc();
  if (alignment == kHugePage) madvise(memory, rounded, MADV_HUGEPAGE);  // a hint: refusal does no harm
  std::memset(memory, 0, rounded);
  return {static_cast<float*>(memory), std::free};
}

std::vector<std::int64_t> row_major_strides(const std::vector<std::int64_t>& size) {
  std::vector<std::int64_t> strides(size.size(), 1);
  for (std::size_t i = size.size(); i-- > 1;) strides[i - 1] = strides[i] * size[i];
  return strides;
}

BoxMove into_whole(const std::vector<std::int64_t>& whole, const std::vector<std::int64_t>& first,
                   const std::vector<std::int64_t>& size) {
  BoxMove box{size, row_major_strides(size), row_major_strides(whole)};
  for (std::size_t i = 0; i < first.size(); ++i) box.to_offset += first[i] * box.to_stride[i];
  return box;
}

BoxMove reversed(BoxMove box) {
  std::swap(box.from_stride, box.to_stride);
  std::swap(box.from_offset, box.to_offset);
  return box;
}

void move_on_host(const BoxMove& box, const float* from, float* to) {
  if (std::ranges::find(box.size, 0) != box.size.end()) return;
  // Rows that are adjacent on both sides are copied at once.
  const bool rows = !box.size.empty() && box.from_stride.back() == 1 && box.to_stride.back() == 1;
  const std::int64_t row = rows ? box.size.back() : 1;
  std::vector<std::int64_t> at(box.size.size() - (rows ? 1 : 0), 0);
  while (true) {
    std::int64_t source = box.from_offset, target = box.to_offset;
    for (std::size_t i = 0; i < at.size(); ++i) {
      source += at[i] * box.from_stride[i];
      target += at[i] * box.to_stride[i];
    }
    std::copy_n(from + source, row, to + target);
    std::size_t i = at.size();
    while (i > 0 && ++at[i - 1] == box.size[i - 1]) at[--i] = 0;
    if (i == 0) return;
  }
}

}  // namespace stepcast
