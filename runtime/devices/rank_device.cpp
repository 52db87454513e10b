#include "runtime/devices/rank_device.hpp"

#include "runtime/transport/progress_thread.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/model_parallel/layer_segments.hpp"

namespace stepcast {
namespace {

/// True for a layer whose weight gradients are computed while ranks exchange what its backward-data pass
/// found.
bool exchanges_after_data(Network& network, std::size_t layer) {
  if (network.kernel(layer).returns_halo()) return true;
  const SharedPart* part = network.shared_part();
  if (part == nullptr) return false;
  using Form = LayerShare::Form;
  if (const auto& share = part->shares[layer])
    return share->form == Form::columns || share->form == Form::experts;
  const GatheredInput* gathered = gathered_input(part, layer);
  return gathered != nullptr && gathered->is_first;
}

}  // namespace

void run_layers(Network& network, Work pass, LayerRange layers) {
  const std::size_t first = layers.first, last = layers.last;
  switch (pass) {
    case Work::forward:
      network.run_forward(first, last);
      break;
    case Work::backward:
      network.run_backward(first, last);
      break;
    case Work::update:
      network.begin_update();
      network.update_layers(first, last);
      break;
  }
}

void run_segments(Network& network, Work pass, LayerRange segments, const Network::Observer& after) {
  const auto run = [&](std::size_t layer, Pass one) {
    if (!network.has(layer, one)) return;
    one == Pass::backward_weights ? network.run(layer, one) : network.kernel(layer).run_interior(one);
    if (after) after(layer, one);
  };
  const auto run_border = [&](std::size_t layer, Pass one) {
    if (network.has(layer, one)) network.kernel(layer).run_border(one);
  };
  for (int segment = segments.first; pass == Work::forward && segment < segments.last; ++segment) {
    const std::size_t layer = segment / kSegmentsPerLayer;
    if (segment % kSegmentsPerLayer == 0) run(layer, Pass::forward);
    if (segment % kSegmentsPerLayer == 1) run_border(layer, Pass::forward);
  }
  for (int segment = segments.last; pass == Work::backward && segment-- > segments.first;) {
    const std::size_t layer = segment / kSegmentsPerLayer;
    const int place = segment % kSegmentsPerLayer;
    if (place == 1) run(layer, Pass::backward_data);
    if (place == (exchanges_after_data(network, layer) ? 0 : 1)) run(layer, Pass::backward_weights);
    if (place == 0) run_border(layer, Pass::backward_data);
  }
}

RankDevice::RankDevice(Network& network) {
  if (network.backend().device_memory() != nullptr) mirror_ = std::make_unique<HostMirror>(network);
}

std::span<float> RankDevice::array_of(const Network& network, Array array) const {
  const ParameterView& all = network.all_parameters();
  if (array == Array::parameters) return mirror_ ? mirror_->parameters() : std::span(all.value, all.elements);
  if (array == Array::gradients)
    return mirror_ ? mirror_->gradients() : std::span(all.gradient, all.elements);
  return {};
}

void RankDevice::time_work(const std::function<void()>& work) {
  const Instant begin = now();
  const DeviceMemory::Event begin_event = mirror_ ? mirror_->device().record_event() : nullptr;
  work();
  if (mirror_) {
    intervals_.push_back({begin_event, mirror_->device().record_event()});
  } else {
    record_since(begin);
  }
}

/// The time of the device counts on both clocks, because no other process uses the device.
void RankDevice::finish() {
  if (intervals_.empty()) return;
  mirror_->finish();
  for (const Interval& one : intervals_) {
    const double seconds = mirror_->device().seconds(one.begin, one.end);
    work_time_.wall += seconds;
    work_time_.cpu += seconds;
  }
  intervals_.clear();
}

std::span<float> RankDevice::send_buffer(const Message& message) {
  const std::span<float> part = memory(message.buffer);
  if (mirror_ && mirror_->on_device(part) != nullptr) mirror_->fetch(part, mirror_->device().record_event());
  return part;
}

void RankDevice::on_received(const Message& message) {
  if (!mirror_ || message.buffer.array == Array::none) return;
  const std::span<float> part = memory(message.buffer);
  if (mirror_->on_device(part) == nullptr) return;
  mirror_->finish();  // otherwise running kernels would read the new values
  mirror_->store(part);
}

std::int64_t RankDevice::device_floats(const Message& message) {
  if (!mirror_ || message.buffer.array == Array::none) return 0;
  const std::span<float> part = memory(message.buffer);
  return mirror_->on_device(part) == nullptr ? 0 : part.size();
}

void RankDevice::copy_to_payload(const Message& message, float* to) {
  const std::span<float> part = memory(message.buffer);
  mirror_->device().copy(mirror_->on_device(part), to, part.size());
}

/// Arrays that only arithmetic uses are in host memory.
void RankDevice::copy_from_payload(const Message& message, const float* from) {
  const std::span<float> part = memory(message.buffer);
  if (float* on_device = mirror_->on_device(part))
    return mirror_->device().copy(from, on_device, part.size());
  mirror_->device().to_host(mirror_->device().record_event(), from, part.data(), part.size());
}

CollectiveBinding RankDevice::bind_collective(const Collective& collective) {
  const Buffer& buffer = collective.buffer;
  CollectiveBinding work = bind_array(memory(buffer), mirror_.get());
  if (buffer.codec.kind != Compression::none) work.uncompressed_elements = buffer.elements.size();
  return work;
}

CollectiveBinding RankDevice::bind_array(std::span<float> part, HostMirror* mirror) {
  CollectiveBinding work{.memory = part};
  work.on_device = mirror != nullptr ? mirror->on_device(part) : nullptr;
  if (work.on_device == nullptr) return work;
  work.ready = mirror->device().record_event();
  work.fetch = [mirror, ready = work.ready](std::span<float> own) { mirror->fetch(own, ready); };
  work.store = [mirror](std::span<float> own) { mirror->store(own); };
  return work;
}

CollectiveBinding RankDevice::bind_backend_memory(std::span<float> on_backend) {
  DeviceMemory* device = device_memory();
  if (device == nullptr) return {.memory = on_backend};
  auto& host_copy = host_copies_[on_backend.data()];
  if (host_copy == nullptr) host_copy = device->host_memory(on_backend.size());
  CollectiveBinding work{.memory = {host_copy.get(), on_backend.size()}};
  work.on_device = on_backend.data();
  work.ready = device->record_event();
  // The address of any part of the host copy, because a collective by groups works on a part of it.
  const auto device_address = [on_host = host_copy.get(), on_device = on_backend.data()](
                                  std::span<const float> own) { return on_device + (own.data() - on_host); };
  work.fetch = [device, device_address, ready = work.ready](std::span<float> own) {
    device->to_host(ready, device_address(own), own.data(), own.size());
  };
  work.store = [device, device_address](std::span<float> own) {
    device->to_device(own.data(), device_address(own), own.size());
  };
  return work;
}

CollectiveBinding RankDevice::bind_layer_sum(LayerKernel& kernel, Pass pass, const Collective& collective) {
  const std::span<float> summed = kernel.partial_sums(pass);
  if (summed.empty()) return RankDevice::bind_collective(collective);
  CollectiveBinding work = bind_backend_memory(summed);
  work.on_waited = [this, &kernel, pass] { time_work([&] { kernel.finish(pass); }); };
  return work;
}

CollectiveBinding RankDevice::bind_expert_rows(LayerKernel& kernel, Pass pass) {
  CollectiveBinding work;
  time_work([&] { work.memory = kernel.exchanged_rows(pass); });
  work.counted = true;
  work.on_waited = [this, &kernel, pass] { time_work([&] { kernel.finish(pass); }); };
  return work;
}

void RankDevice::record_since(const Instant& begin) {
  const Instant end = now();
  work_time_.wall += end.wall - begin.wall;
  work_time_.cpu += end.cpu - begin.cpu;
}

void RankDevice::pause(double seconds) {
  sleep_until(now().wall + seconds);
}

std::span<float> RankDevice::memory(const Buffer& buffer) {
  if (buffer.codec.kind != Compression::none && buffer.elements.size() > 0) {
    const auto words = WireLayout(buffer.codec, buffer.elements.size()).words();
    return host_array(buffer.array, words);
  }
  const auto by_size = static_cast<std::size_t>(buffer.size.value / sizeof(float));
  const std::span<float> known = array(buffer.array);
  if (!known.empty() && buffer.elements.size() > 0) {
    const Slice slice = stored(buffer.elements);
    return known.subspan(slice.begin, slice.size());
  }
  if (!known.empty() && by_size <= known.size()) return known.first(by_size);
  return host_array(buffer.array, by_size);
}

std::span<float> RankDevice::host_array(Array array, std::size_t size) {
  const std::lock_guard lock(mutex_);
  std::vector<float>& other = host_arrays_[{array, size}];
  other.resize(size);
  return other;
}

}  // namespace stepcast
