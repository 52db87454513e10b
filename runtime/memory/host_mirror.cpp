#include "runtime/memory/host_mirror.hpp"

#include <algorithm>
#include <iterator>

namespace stepcast {

HostMirror::HostMirror(Network& network)
    : network_(network),
      device_(*network.backend().device_memory()),
      elements_(network.all_parameters().elements),
      values_{device_.host_memory(elements_), network.all_parameters().value},
      gradients_{device_.host_memory(elements_), network.all_parameters().gradient} {}

HostMirror::MappedArray* HostMirror::mapped_array(std::span<const float> part) {
  for (MappedArray* mapped : {&values_, &gradients_}) {
    if (part.data() >= mapped->host.get() && part.data() + part.size() <= mapped->host.get() + elements_)
      return mapped;
  }
  return nullptr;
}

float* HostMirror::on_device(std::span<const float> part) {
  const MappedArray* mapped = mapped_array(part);
  return mapped == nullptr ? nullptr : mapped->device + (part.data() - mapped->host.get());
}

void HostMirror::fetch(std::span<float> part, const DeviceMemory::Mark& after) {
  device_.to_host(after, on_device(part), part.data(), part.size());
}

void HostMirror::store(std::span<const float> part) {
  device_.to_device(part.data(), on_device(part), part.size());
}

void HostMirror::copy_to_host(const MappedArray& mapped, std::size_t begin, std::size_t end) {
  if (begin < end)
    device_.to_host(device_.mark(), mapped.device + begin, mapped.host.get() + begin, end - begin);
}

void HostMirror::map_to_host(std::span<float> part) {
  MappedArray* mapped = mapped_array(part);
  if (mapped == nullptr || part.empty()) return;
  auto begin = static_cast<std::size_t>(part.data() - mapped->host.get()), end = begin + part.size();
  std::size_t missing = begin;  // first element that is not mapped yet
  auto one = mapped->ranges.upper_bound(begin);
  if (one != mapped->ranges.begin() && std::prev(one)->second >= begin) --one;
  while (one != mapped->ranges.end() && one->first <= end) {
    copy_to_host(*mapped, missing, one->first);
    missing = std::max(missing, one->second);
    begin = std::min(begin, one->first);
    one = mapped->ranges.erase(one);
  }
  copy_to_host(*mapped, missing, end);
  mapped->ranges[begin] = std::max(missing, end);
}

void HostMirror::unmap() {
  for (MappedArray* mapped : {&values_, &gradients_}) {
    for (const auto& [begin, end] : mapped->ranges) store({mapped->host.get() + begin, end - begin});
    mapped->ranges.clear();
  }
}

const float* HostMirror::uploaded(std::span<const float> values) {
  if (const float* address = on_device(values)) return address;
  if (scratch_ == nullptr) scratch_ = network_.backend().allocate(elements_);
  finish();  // kernels may still read the previous copy
  device_.to_device(values.data(), scratch_.get(), values.size());
  return scratch_.get();
}

}  // namespace stepcast
