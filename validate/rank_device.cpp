#include "validate/rank_device.hpp"

#include <algorithm>

namespace stepcast {

void RankDevice::book(const Instant& begin) {
  const Instant end = now();
  worked_.wall += end.wall - begin.wall;
  worked_.cpu += end.cpu - begin.cpu;
}

CollectiveWork RankDevice::work_of(const Collective& collective) {
  const Buffer& buffer = collective.buffer;
  const bool whole = buffer.codec.kind == Compression::none;
  return {memory(buffer), {}, {}, {}, whole ? -1 : buffer.elements.size()};
}

std::span<float> RankDevice::memory(const Buffer& buffer) {
  if (buffer.codec.kind != Compression::none && buffer.elements.size() > 0) {
    const auto words = WireLayout(buffer.codec, buffer.elements.size()).words();
    return other(buffer.array, static_cast<std::size_t>(words));
  }
  const auto by_size = static_cast<std::size_t>(buffer.size.value / sizeof(float));
  const std::span<float> known = array(buffer.array);
  if (!known.empty() && buffer.elements.size() > 0) {
    const Slice slice = stored(buffer.elements);
    return known.subspan(static_cast<std::size_t>(slice.begin), static_cast<std::size_t>(slice.size()));
  }
  if (!known.empty() && by_size <= known.size()) return known.first(by_size);
  return other(buffer.array, by_size);
}

std::span<float> RankDevice::other(Array array, std::size_t size) {
  const std::lock_guard lock(mutex_);
  std::vector<float>& other = others_[{array, size}];
  other.resize(size);
  return other;
}

}  // namespace stepcast
