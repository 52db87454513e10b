#include "validate/rank_device.hpp"

#include <algorithm>

#include "strategies/compressed_gradient.hpp"

namespace stepcast {

RankDevice::RankDevice(Network& network) {
  if (network.backend().device_memory() != nullptr) mirror_ = std::make_unique<Mirror>(network);
}

std::span<float> RankDevice::array_of(const Network& network, Array array) const {
  const ParameterView& all = network.all_parameters();
  if (array == Array::parameters) return mirror_ ? mirror_->parameters() : std::span(all.value, all.elements);
  if (array == Array::gradients)
    return mirror_ ? mirror_->gradients() : std::span(all.gradient, all.elements);
  return {};
}

void RankDevice::timed(const std::function<void()>& work) {
  const Instant begin = now();
  const DeviceMemory::Mark mark = mirror_ ? mirror_->device().mark() : nullptr;
  work();
  if (mirror_) {
    intervals_.push_back({mark, mirror_->device().mark()});
  } else {
    book(begin);
  }
}

/// Nobody else has the device, so its time counts as a core's does.
void RankDevice::finish() {
  if (intervals_.empty()) return;
  mirror_->finish();
  for (const Interval& one : intervals_) {
    const double seconds = mirror_->device().seconds(one.begin, one.end);
    worked_.wall += seconds;
    worked_.cpu += seconds;
  }
  intervals_.clear();
}

std::span<float> RankDevice::outgoing(const Message& message) {
  const std::span<float> part = memory(message.buffer);
  if (mirror_ && mirror_->on_device(part) != nullptr) mirror_->fetch(part, mirror_->device().mark());
  return part;
}

void RankDevice::arrived(const Message& message) {
  if (!mirror_ || message.buffer.array == Array::none) return;
  const std::span<float> part = memory(message.buffer);
  if (mirror_->on_device(part) == nullptr) return;
  mirror_->finish();  // or what still computes would read the new values
  mirror_->store(part);
}

CollectiveWork RankDevice::work_of(const Collective& collective) {
  const Buffer& buffer = collective.buffer;
  CollectiveWork work{.memory = memory(buffer)};
  if (buffer.codec.kind != Compression::none) work.elements = buffer.elements.size();
  work.on_device = mirror_ ? mirror_->on_device(work.memory) : nullptr;
  if (work.on_device == nullptr) return work;
  work.ready = mirror_->device().mark();
  work.before = [this, ready = work.ready](std::span<float> part) { mirror_->fetch(part, ready); };
  work.after = [this](std::span<float> part) { mirror_->store(part); };
  return work;
}

void RankDevice::book(const Instant& begin) {
  const Instant end = now();
  worked_.wall += end.wall - begin.wall;
  worked_.cpu += end.cpu - begin.cpu;
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
