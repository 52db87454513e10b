#include "validate/rank_device.hpp"

#include <algorithm>

namespace stepcast {

std::span<float> RankDevice::memory(const Buffer& buffer) {
  const auto by_size = static_cast<std::size_t>(buffer.size.value / sizeof(float));
  const std::span<float> known = array(buffer.array);
  if (!known.empty() && buffer.elements.size() > 0) {
    const Slice slice = stored(buffer.elements);
    return known.subspan(static_cast<std::size_t>(slice.begin), static_cast<std::size_t>(slice.size()));
  }
  if (!known.empty() && by_size <= known.size()) return known.first(by_size);
  const std::lock_guard lock(mutex_);
  std::vector<float>& other = others_[buffer.array];
  const auto needed = std::max(by_size, static_cast<std::size_t>(buffer.elements.end));
  if (other.size() < needed) other.resize(needed);
  return std::span(other).first(by_size);
}

}  // namespace stepcast
