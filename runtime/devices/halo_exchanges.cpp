#include "runtime/devices/halo_exchanges.hpp"

#include <cstdlib>
#include <stdexcept>

#include "models/partition/spatial_shard.hpp"

namespace stepcast {

namespace {

/// The dimension along which two devices are neighbours: their indices differ by the product of the later
/// dimensions' parts.
std::size_t dimension_between(const Parts& parts, int a, int b) {
  int stride = 1;
  for (std::size_t i = parts.size(); i-- > 0;) {
    if (parts[i] > 1 && std::abs(a - b) == stride) return i;
    stride *= parts[i];
  }
  return 0;
}

}  // namespace

std::vector<std::vector<HaloBox>> halo_messages(const Model& model, const SpatialPartition& partition,
                                                const Collective& exchange, HaloRows rows, int place) {
  const auto elements = static_cast<std::int64_t>(exchange.buffer.size.value / sizeof(float));
  std::vector<std::vector<HaloBox>> phases;
  for (const Phase& phase : exchange.schedule->phases) {
    phases.emplace_back();
    for (const Edge& edge : *phase.edges) {
      if (edge.source != place && edge.target != place) continue;
      const std::size_t dimension = dimension_between(partition.parts, edge.source, edge.target);
      const bool back = rows == HaloRows::returned;
      const int reader = back ? edge.source : edge.target, held_by = back ? edge.target : edge.source;
      phases.back().push_back({edge.source == place,
                               halo_box(model, partition,
                                        {static_cast<std::size_t>(exchange.layer), rows == HaloRows::errors,
                                         reader, dimension, held_by < reader}),
                               slice_of(*exchange.schedule, phase, edge, 0, elements).begin});
    }
  }
  return phases;
}

void pack_halo(Network& network, std::size_t layer, Pass pass, const std::vector<HaloBox>& phase,
               float* buffer) {
  network.backend().begin_thread();
  for (const HaloBox& one : phase)
    if (one.sends) network.kernel(layer).pack_halo(pass, one.box, buffer + one.begin);
}

void unpack_halo(Network& network, std::size_t layer, Pass pass, const std::vector<HaloBox>& phase,
                 const float* buffer) {
  for (const HaloBox& one : phase)
    if (!one.sends) network.kernel(layer).unpack_halo(pass, one.box, buffer + one.begin);
}

StagingBuffer StagingBuffers::of(std::size_t elements) {
  DeviceMemory* const device = backend_.device_memory();
  if (elements > elements_) {
    backend_.finish();  // kernels may still read the old memory
    on_backend_ = backend_.allocate(elements);
    on_host_ = device == nullptr ? on_backend_ : device->host_memory(elements);
    elements_ = elements;
  }
  return {on_backend_.get(), {on_host_.get(), elements}, device};
}

CollectiveBinding HaloExchanges::bind_staging(const Collective& collective, float*& on_backend) {
  const StagingBuffer memory =
      staging_.of(static_cast<std::size_t>(collective.buffer.size.value / sizeof(float)));
  CollectiveBinding work{.memory = memory.on_host};
  if (memory.device != nullptr) work.on_device = memory.on_backend;
  work.staging_device = memory.device;
  on_backend = memory.on_backend;
  return work;
}

CollectiveBinding HaloExchanges::bind(const Collective& collective,
                                      const std::function<void(const std::function<void()>&)>& time_work) {
  const bool errors = collective.buffer.array == Array::errors;
  const Pass pass = errors ? Pass::backward_data : Pass::forward;
  const std::size_t layer = collective.layer;
  LayerKernel& kernel = network_.kernel(layer);
  const bool returned = errors && kernel.returns_halo();
  if (!returned && !kernel.has_halo(pass))
    throw std::logic_error("the plan exchanges a halo of a layer that has none");
  float* buffer = nullptr;
  CollectiveBinding work = bind_staging(collective, buffer);
  if (!returned) time_work([&] { kernel.prepare_halo(pass); });
  auto& messages = messages_[&collective];
  const HaloRows rows = returned ? HaloRows::returned : errors ? HaloRows::errors : HaloRows::input;
  if (messages.empty()) messages = halo_messages(model_, partition_, collective, rows, place_);
  work.before_phase = [this, &messages, layer, pass, buffer](std::size_t phase) {
    pack_halo(network_, layer, pass, messages[phase], buffer);
  };
  work.after_phase = [this, &messages, layer, pass, buffer](std::size_t phase) {
    unpack_halo(network_, layer, pass, messages[phase], buffer);
  };
  return work;
}

}  // namespace stepcast
