#include "runtime/devices/spatial_device.hpp"

#include <stdexcept>

#include "runtime/devices/rank_device.hpp"
#include "runtime/devices/spatial_resharding.hpp"
#include "strategies/model_parallel/layer_segments.hpp"

namespace stepcast {

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

namespace {

class SpatialDevice : public RankDevice {
 public:
  SpatialDevice(const SpatialNetwork& shard, const Model& model, const NetworkSharing& sharing, int place,
                DeviceLearning learning)
      : RankDevice(*shard.network),
        network_(*shard.network),
        model_(model),
        partition_(sharing.partition),
        place_(place),
        learning_(std::move(learning)),
        map_(network_),
        staging_(network_.backend()) {
    if (reshards_to_batch(sharing, model))
      resharding_ = std::make_unique<SpatialToBatchResharding>(network_, model, sharing, place);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      if (model.layers[i].kind == LayerKind::batch_norm && sharing.statistics_over > 1)
        network_.kernel(i).defer_sums();
    }
  }

  void begin() override {
    network_.reset();
    if (learning_.start) learning_.start(network_);
    begin_step(0);
  }

  void begin_step(int step) override {
    // In timed runs the data never change, and the optimizer keeps its own rate.
    if (!learning_.next_step) return;
    learning_.next_step();
    network_.set_rate(learning_.rate.at(step + 1, learning_.summed), 1.0 / learning_.summed);
  }

  void compute(Work pass, LayerRange segments) override {
    pass_ = pass;
    // A layer's forward pass runs in its first segment, its backward pass in its second (layer_segments.hpp).
    const int which = pass == Work::forward ? 0 : 1;
    const int first = (segments.first - which + kSegmentsPerLayer - 1) / kSegmentsPerLayer;
    const int last = (segments.last - 1 - which + kSegmentsPerLayer) / kSegmentsPerLayer;
    const LayerRange all{0, static_cast<int>(model_.layers.size())};
    time_work([&] { run_layers(network_, pass, pass == Work::update ? all : LayerRange{first, last}); });
  }

  CollectiveBinding bind_collective(const Collective& collective) override {
    if (collective.kind == Collective::Kind::exchange) return bind_halo(collective);
    if (collective.kind == Collective::Kind::all_to_all) return bind_resharding(collective);
    if (collective.buffer.array == Array::statistics) return bind_statistics(collective);
    return RankDevice::bind_collective(collective);
  }

 protected:
  std::span<float> array(Array array) override { return array_of(network_, array); }
  Slice stored(const Slice& of_model) const override { return map_.stored(of_model); }

 private:
  /// One buffer is enough, because programs wait for each exchange before the next.
  StagingBuffer staging(const Collective& collective) {
    return staging_.of(static_cast<std::size_t>(collective.buffer.size.value / sizeof(float)));
  }

  static CollectiveBinding bind_staging(const StagingBuffer& memory) {
    CollectiveBinding work{.memory = memory.on_host};
    if (memory.device != nullptr) work.on_device = memory.on_backend;
    work.staging_device = memory.device;
    return work;
  }

  CollectiveBinding bind_halo(const Collective& collective) {
    const bool errors = collective.buffer.array == Array::errors;
    const Pass pass = errors ? Pass::backward_data : Pass::forward;
    LayerKernel& kernel = network_.kernel(static_cast<std::size_t>(collective.layer));
    if (!kernel.has_halo(pass)) throw std::logic_error("the plan exchanges a halo of a layer that has none");
    const StagingBuffer memory = staging(collective);
    time_work([&] { kernel.prepare_halo(pass); });
    auto& messages = messages_[&collective];
    if (messages.empty()) messages = halo_messages(model_, partition_, collective, place_);
    CollectiveBinding work = bind_staging(memory);
    work.before_phase = [this, &messages, &kernel, pass, on_backend = memory.on_backend](std::size_t phase) {
      network_.backend().begin_thread();
      for (const HaloBox& one : messages[phase])
        if (one.sends) kernel.pack_halo(pass, one.box, on_backend + one.begin);
    };
    work.after_phase = [&messages, &kernel, pass, on_backend = memory.on_backend](std::size_t phase) {
      for (const HaloBox& one : messages[phase])
        if (!one.sends) kernel.unpack_halo(pass, one.box, on_backend + one.begin);
    };
    return work;
  }

  CollectiveBinding bind_resharding(const Collective& collective) {
    const StagingBuffer memory = staging(collective);
    CollectiveBinding work = bind_staging(memory);
    resharding_->add_hooks(work, pass_ == Work::forward, memory.on_backend);
    return work;
  }

  CollectiveBinding bind_statistics(const Collective& collective) {
    LayerKernel& kernel = network_.kernel(static_cast<std::size_t>(collective.layer));
    return bind_layer_sum(kernel, pass_ == Work::forward ? Pass::forward : Pass::backward_data, collective);
  }

  Network& network_;
  const Model& model_;
  SpatialPartition partition_;
  int place_;
  DeviceLearning learning_;
  ParameterLayout map_;
  Work pass_ = Work::forward;  ///< the pass that was computed last
  StagingBuffers staging_;
  std::map<const Collective*, std::vector<std::vector<HaloBox>>> messages_;
  std::unique_ptr<SpatialToBatchResharding> resharding_;
};

}  // namespace

NetworkOptions spatial_options(const SpatialShard& part, const Model& model, const NetworkSharing& sharing,
                               NetworkOptions options) {
  const int ways = device_count(sharing.partition.parts);
  const bool all_whole = sharing.partition.whole_from == 0;
  options.batch = all_whole ? sharing.micro_batch / ways : sharing.micro_batch;
  if (reshards_to_batch(sharing, model)) {
    options.part.whole_from = sharing.partition.whole_from;
    options.part.whole_batch = sharing.micro_batch / ways;
  }
  options.part.spatial_shard = &part;
  options.part.statistics_replicas = sharing.statistics_over > 1 ? sharing.statistics_over / ways : 0;
  return options;
}

SpatialNetwork spatial_network(Backend& backend, const Model& model, const NetworkSharing& sharing, int place,
                               const NetworkOptions& options) {
  SpatialNetwork shard{std::make_unique<SpatialShard>(spatial_shard(model, sharing.partition, place)),
                       nullptr};
  shard.network = std::make_unique<Network>(backend, shard.part->model,
                                            spatial_options(*shard.part, model, sharing, options));
  return shard;
}

std::unique_ptr<RankDevice> spatial_device(const SpatialNetwork& shard, const Model& model,
                                           const NetworkSharing& sharing, int place,
                                           DeviceLearning learning) {
  return std::make_unique<SpatialDevice>(shard, model, sharing, place, std::move(learning));
}

}  // namespace stepcast
