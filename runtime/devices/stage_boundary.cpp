#include "runtime/devices/stage_boundary.hpp"

#include <algorithm>

#include "models/partition/pipeline_stages.hpp"

namespace stepcast {

const StageBoundary::Entry& StageBoundary::entry_of(int source) const {
  return *std::find_if(entries.begin(), entries.end(),
                       [source](const Entry& one) { return one.source == source; });
}

StageBoundary boundary_before(const Model& model, int layer, std::int64_t batch) {
  StageBoundary boundary;
  if (layer == 0) return boundary;
  for (const int source : boundary_sources(model, layer)) {
    const Shape& shape = source < 0 ? model.input : model.layers[static_cast<std::size_t>(source)].output;
    auto size = static_cast<std::size_t>(batch);
    for (const std::int64_t extent : shape) size *= static_cast<std::size_t>(extent);
    boundary.entries.push_back({source, boundary.size, size});
    boundary.size += size;
  }
  return boundary;
}

void DeviceStageBoundary::pack_values(Network& network, std::size_t micro_batch, float* to) {
  for (const StageBoundary::Entry& entry : after_.entries) {
    if (is_own(entry)) {
      const auto layer = static_cast<std::size_t>(entry.source);
      network.backend().copy_out(network.kernel(layer).output(), to + entry.begin);
    } else {
      const float* from = received_.at(micro_batch).values.get() + before_.entry_of(entry.source).begin;
      network.backend().device_memory()->copy(from, to + entry.begin, entry.size);
    }
  }
}

/// The error signal of a tensor that later chunks read too is the sum of this chunk's and theirs.
void DeviceStageBoundary::pack_errors(Network& network, std::size_t micro_batch, float* to) {
  network.backend().clear(to, before_.size);
  for (const StageBoundary::Entry& entry : after_.entries) {
    if (is_own(entry)) continue;
    const float* from = received_.at(micro_batch).errors.get() + entry.begin;
    network.backend().device_memory()->copy(from, to + before_.entry_of(entry.source).begin, entry.size);
  }
  if (scratch_ == nullptr) scratch_ = network.backend().allocate(before_.size);
  for (const StageBoundary::Entry& entry : before_.entries)
    network.add_input_gradient(entry.source, to + entry.begin, scratch_.get());
}

void DeviceStageBoundary::unpack_values(Network& network, std::size_t micro_batch, const float* from) {
  const float* received = store_received(network, received_.at(micro_batch).values, from, before_.size);
  for (const StageBoundary::Entry& entry : before_.entries) {
    if (Tensor* tensor = network.boundary_input(entry.source))
      network.backend().copy_in(received + entry.begin, *tensor);
  }
}

void DeviceStageBoundary::unpack_errors(Network& network, std::size_t micro_batch, const float* from) {
  const float* received = store_received(network, received_.at(micro_batch).errors, from, after_.size);
  for (const StageBoundary::Entry& entry : after_.entries) {
    if (!is_own(entry)) continue;
    if (Tensor* tensor = network.boundary_output_gradient(static_cast<std::size_t>(entry.source)))
      network.backend().copy_in(received + entry.begin, *tensor);
  }
}

float* DeviceStageBoundary::store_received(Network& network, std::shared_ptr<float>& memory,
                                           const float* from, std::size_t size) {
  if (memory == nullptr) memory = network.backend().allocate(size);
  network.backend().device_memory()->copy(from, memory.get(), size);
  return memory.get();
}

}  // namespace stepcast
