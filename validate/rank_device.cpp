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

std::int64_t RankDevice::floats_on_device(const Message& message) {
  if (!mirror_ || message.buffer.array == Array::none) return 0;
  const std::span<float> part = memory(message.buffer);
  return mirror_->on_device(part) == nullptr ? 0 : static_cast<std::int64_t>(part.size());
}

void RankDevice::put_in_parcel(const Message& message, float* to) {
  const std::span<float> part = memory(message.buffer);
  mirror_->device().copy(mirror_->on_device(part), to, part.size());
}

/// Where the array is one that arithmetic alone knows, it lies on the host.
void RankDevice::take_from_parcel(const Message& message, const float* from) {
  const std::span<float> part = memory(message.buffer);
  if (float* there = mirror_->on_device(part)) return mirror_->device().copy(from, there, part.size());
  mirror_->device().to_host(mirror_->device().mark(), from, part.data(), part.size());
}

CollectiveWork RankDevice::work_of(const Collective& collective) {
  const Buffer& buffer = collective.buffer;
  CollectiveWork work = work_on(memory(buffer), mirror_.get());
  if (buffer.codec.kind != Compression::none) work.elements = buffer.elements.size();
  return work;
}

CollectiveWork RankDevice::work_on(std::span<float> part, Mirror* mirror) {
  CollectiveWork work{.memory = part};
  work.on_device = mirror != nullptr ? mirror->on_device(part) : nullptr;
  if (work.on_device == nullptr) return work;
  work.ready = mirror->device().mark();
  work.before = [mirror, ready = work.ready](std::span<float> own) { mirror->fetch(own, ready); };
  work.after = [mirror](std::span<float> own) { mirror->store(own); };
  return work;
}

CollectiveWork RankDevice::work_on_backend(std::span<float> there) {
  DeviceMemory* device = device_memory();
  if (device == nullptr) return {.memory = there};
  auto& twin = twins_[there.data()];
  if (twin == nullptr) twin = device->host_memory(there.size());
  CollectiveWork work{.memory = {twin.get(), there.size()}};
  work.on_device = there.data();
  work.ready = device->mark();
  // Parts of the twin, wherever a sum of several begins.
  const auto place = [here = twin.get(), there = there.data()](std::span<const float> own) {
    return there + (own.data() - here);
  };
  work.before = [device, place, ready = work.ready](std::span<float> own) {
    device->to_host(ready, place(own), own.data(), own.size());
  };
  work.after = [device, place](std::span<float> own) {
    device->to_device(own.data(), place(own), own.size());
  };
  return work;
}

CollectiveWork RankDevice::sum_within(LayerKernel& kernel, Pass pass, const Collective& collective) {
  const std::span<float> summed = kernel.summed(pass);
  if (summed.empty()) return RankDevice::work_of(collective);
  CollectiveWork work = work_on_backend(summed);
  work.waited = [this, &kernel, pass] { timed([&] { kernel.finish(pass); }); };
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
