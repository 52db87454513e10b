#include "validate/crossing.hpp"

#include <algorithm>

#include "models/stages.hpp"

namespace stepcast {

const Crossing::Place& Crossing::of(int source) const {
  return *std::find_if(places.begin(), places.end(),
                       [source](const Place& one) { return one.source == source; });
}

Crossing crossing_at(const Model& model, int layer, std::int64_t batch) {
  Crossing crossing;
  if (layer == 0) return crossing;
  for (const int source : crossing_sources(model, layer)) {
    const Shape& shape = source < 0 ? model.input : model.layers[static_cast<std::size_t>(source)].output;
    auto size = static_cast<std::size_t>(batch);
    for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
    crossing.places.push_back({source, crossing.size, size});
    crossing.size += size;
  }
  return crossing;
}

void DeviceCrossing::pack_values(Network& network, std::size_t turn, float* to) {
  for (const Crossing::Place& place : after_.places) {
    if (is_own(place)) {
      const auto layer = static_cast<std::size_t>(place.source);
      network.backend().copy_out(network.kernel(layer).output(), to + place.begin);
    } else {
      const float* from = held_.at(turn).values.get() + before_.of(place.source).begin;
      network.backend().device_memory()->copy(from, to + place.begin, place.size);
    }
  }
}

/// Of what is read here and in later runs.
void DeviceCrossing::pack_errors(Network& network, std::size_t turn, float* to) {
  network.backend().clear(to, before_.size);
  for (const Crossing::Place& place : after_.places) {
    if (is_own(place)) continue;
    const float* from = held_.at(turn).errors.get() + place.begin;
    network.backend().device_memory()->copy(from, to + before_.of(place.source).begin, place.size);
  }
  if (room_ == nullptr) room_ = network.backend().allocate(before_.size);
  for (const Crossing::Place& place : before_.places)
    network.add_error(place.source, to + place.begin, room_.get());
}

void DeviceCrossing::unpack_values(Network& network, std::size_t turn, const float* from) {
  const float* held = keep(network, held_.at(turn).values, from, before_.size);
  for (const Crossing::Place& place : before_.places) {
    if (Tensor* tensor = network.received(place.source))
      network.backend().copy_in(held + place.begin, *tensor);
  }
}

void DeviceCrossing::unpack_errors(Network& network, std::size_t turn, const float* from) {
  const float* held = keep(network, held_.at(turn).errors, from, after_.size);
  for (const Crossing::Place& place : after_.places) {
    if (!is_own(place)) continue;
    if (Tensor* tensor = network.outside_gradient(static_cast<std::size_t>(place.source)))
      network.backend().copy_in(held + place.begin, *tensor);
  }
}

float* DeviceCrossing::keep(Network& network, std::shared_ptr<float>& memory, const float* from,
                            std::size_t size) {
  if (memory == nullptr) memory = network.backend().allocate(size);
  network.backend().device_memory()->copy(from, memory.get(), size);
  return memory.get();
}

}  // namespace stepcast
