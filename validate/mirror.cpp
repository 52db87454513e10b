#include "validate/mirror.hpp"

#include <algorithm>
#include <iterator>

namespace stepcast {

Mirror::Mirror(Network& network)
    : network_(network),
      device_(*network.backend().device_memory()),
      elements_(network.all_parameters().elements),
      values_{device_.host_memory(elements_), network.all_parameters().value},
      gradients_{device_.host_memory(elements_), network.all_parameters().gradient} {}

Mirror::Twin* Mirror::twin_of(std::span<const float> part) {
  for (Twin* twin : {&values_, &gradients_}) {
    if (part.data() >= twin->host.get() && part.data() + part.size() <= twin->host.get() + elements_)
      return twin;
  }
  return nullptr;
}

float* Mirror::on_device(std::span<const float> part) {
  const Twin* twin = twin_of(part);
  return twin == nullptr ? nullptr : twin->device + (part.data() - twin->host.get());
}

void Mirror::fetch(std::span<float> part, const DeviceMemory::Mark& after) {
  device_.to_host(after, on_device(part), part.data(), part.size());
}

void Mirror::store(std::span<const float> part) {
  device_.to_device(part.data(), on_device(part), part.size());
}

void Mirror::copy_down(const Twin& twin, std::size_t begin, std::size_t end) {
  if (begin < end) device_.to_host(device_.mark(), twin.device + begin, twin.host.get() + begin, end - begin);
}

void Mirror::lend(std::span<float> part) {
  Twin* twin = twin_of(part);
  if (twin == nullptr || part.empty()) return;
  auto begin = static_cast<std::size_t>(part.data() - twin->host.get()), end = begin + part.size();
  std::size_t missing = begin;  // all before it is lent
  auto one = twin->lent.upper_bound(begin);
  if (one != twin->lent.begin() && std::prev(one)->second >= begin) --one;
  while (one != twin->lent.end() && one->first <= end) {
    copy_down(*twin, missing, one->first);
    missing = std::max(missing, one->second);
    begin = std::min(begin, one->first);
    one = twin->lent.erase(one);
  }
  copy_down(*twin, missing, end);
  twin->lent[begin] = std::max(missing, end);
}

void Mirror::take_back() {
  for (Twin* twin : {&values_, &gradients_}) {
    for (const auto& [begin, end] : twin->lent) store({twin->host.get() + begin, end - begin});
    twin->lent.clear();
  }
}

const float* Mirror::uploaded(std::span<const float> values) {
  if (const float* there = on_device(values)) return there;
  if (scratch_ == nullptr) scratch_ = network_.backend().allocate(elements_);
  finish();  // who reads what was copied there before
  device_.to_device(values.data(), scratch_.get(), values.size());
  return scratch_.get();
}

}  // namespace stepcast
