#include "validate/rank_device.hpp"

#include <algorithm>

namespace stepcast {

void RankDevice::book(const Instant& begin) {
  const Instant end = now();
  worked_.wall += end.wall - begin.wall;
  worked_.cpu += end.cpu - begin.cpu;
}

std::span<float> RankDevice::memory(const Buffer& buffer) {
  const auto by_size = static_cast<std::size_t>(buffer.size.value / sizeof(float));
  const std::span<float> known = array(buffer.array);
  if (!known.empty() && buffer.elements.size() > 0) {
    const Slice slice = stored(buffer.elements);
    return known.subspan(static_cast<std::size_t>(slice.begin), static_cast<std::size_t>(slice.size()));
  }
  if (!known.empty() && by_size <= known.size()) return known.first(by_size);
  const std::lock_guard lock(mutex_);
  std::vector<float>& other = others_[{buffer.array, by_size}];
  other.resize(by_size);
  return other;
}

}  // namespace stepcast
