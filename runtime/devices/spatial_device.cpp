#include "runtime/devices/spatial_device.hpp"

#include <utility>

#include "models/network/layer.hpp"
#include "models/partition/spatial_shard.hpp"
#include "runtime/devices/rank_device.hpp"
#include "strategies/model_parallel/layer_segments.hpp"

namespace stepcast {

std::vector<SampleRun> runs_of_shard(const Shape& map, const SpatialPartition& partition, int device) {
  const std::vector<int> place = grid_place(partition.parts, device);
  std::vector<Rows> box{{0, map.front()}};
  for (std::size_t i = 0; i < partition.parts.size(); ++i)
    box.push_back(part_of(map[i + 1], partition.parts[i], place[i]));
  std::vector<std::int64_t> at;
  for (const Rows& rows : box) at.push_back(rows.first);
  const std::size_t last = box.size() - 1;
  std::vector<SampleRun> runs;
  for (std::int64_t in_part = 0;; in_part += box[last].size()) {
    std::int64_t in_whole = 0;
    for (std::size_t i = 0; i <= last; ++i) in_whole = in_whole * map[i] + at[i];
    runs.push_back({in_part, in_whole, box[last].size()});
    std::size_t i = last;
    while (i > 0 && ++at[i - 1] == box[i - 1].last) {
      at[i - 1] = box[i - 1].first;
      --i;
    }
    if (i == 0) return runs;
  }
}

Shape unflattened_shape(const Model& model, int source, const SpatialPartition& partition) {
  const std::size_t dimensions = partition.parts.size() + 1;
  while (source >= 0 && model.layers[source].output.size() != dimensions)
    source = model.layers[source].inputs.front();
  return source < 0 ? model.input : model.layers[source].output;
}

bool reshards_to_batch(const ModelPartition& partition, const Model& model) {
  const std::size_t from = partition.spatial.whole_from;
  return device_count(partition.spatial.parts) > 1 && from > 0 && from < model.layers.size();
}

SpatialToBatchResharding::SpatialToBatchResharding(Network& network, const Model& model,
                                                   const ModelPartition& partition, int place)
    : network_(network),
      backend_(network.backend()),
      partition_(partition.spatial),
      place_(place),
      ways_(device_count(partition_.parts)),
      source_(model.layers[partition_.whole_from].inputs.front()),
      samples_(partition.micro_batch / ways_),
      map_(unflattened_shape(model, source_, partition_)),
      sample_elements_(samples_ * elements(map_)),
      block_elements_(sample_elements_ / ways_),
      blocks_(backend_.allocate(block_elements_ * ways_)),
      samples_buffer_(backend_.allocate(sample_elements_)),
      scratch_(backend_.allocate(sample_elements_)) {}

BoxMove SpatialToBatchResharding::scatter(int device) const {
  const std::vector<int> place = grid_place(partition_.parts, device);
  Shape whole{samples_}, first{0, 0}, size{samples_, map_.front()};
  whole.insert(whole.end(), map_.begin(), map_.end());
  for (std::size_t i = 0; i < partition_.parts.size(); ++i) {
    const Rows rows = part_of(map_[i + 1], partition_.parts[i], place[i]);
    first.push_back(rows.first);
    size.push_back(rows.size());
  }
  return into_whole(whole, first, size);
}

BoxMove SpatialToBatchResharding::gather(int device) const {
  return reversed(scatter(device));
}

float* SpatialToBatchResharding::block(float* memory, int from, int to) const {
  return memory + (from * ways_ + to) * block_elements_;
}

void SpatialToBatchResharding::add_hooks(CollectiveBinding& binding, bool forward, float* memory) {
  const std::size_t last = ways_ - 2;  // an all-to-all has one phase less than ranks
  binding.before_phase = [this, forward, memory](std::size_t phase) {
    backend_.begin_thread();
    if (phase == 0) forward ? pack_parts(memory) : pack_errors(memory);
  };
  binding.after_phase = [this, forward, memory, last](std::size_t phase) {
    if (phase == last) forward ? unpack_samples(memory) : unpack_errors(memory);
  };
}

/// The samples of rank 0 come first, then those of rank 1 and so on, which is the order of blocks (place, 0),
/// (place, 1) and so on.
void SpatialToBatchResharding::pack_parts(float* memory) {
  backend_.copy_out(network_.kernel(source_).output(), block(memory, place_, 0));
}

void SpatialToBatchResharding::unpack_samples(float* memory) {
  for (int from = 0; from < ways_; ++from)
    backend_.move(scatter(from), block(memory, from, place_), samples_buffer_.get());
  backend_.copy_in(samples_buffer_.get(), *network_.boundary_input(source_));
}

void SpatialToBatchResharding::pack_errors(float* memory) {
  backend_.clear(samples_buffer_.get(), sample_elements_);
  network_.add_input_gradient(source_, samples_buffer_.get(), scratch_.get());
  for (int to = 0; to < ways_; ++to)
    backend_.move(gather(to), samples_buffer_.get(), block(memory, place_, to));
}

void SpatialToBatchResharding::unpack_errors(float* memory) {
  const std::int64_t each = block_elements_;
  backend_.move({.size = {ways_, each}, .from_stride = {ways_ * each, 1}, .to_stride = {each, 1}},
                block(memory, 0, place_), blocks_.get());
  backend_.copy_in(blocks_.get(), *network_.boundary_output_gradient(source_));
}

namespace {

class SpatialDevice : public RankDevice {
 public:
  SpatialDevice(const SpatialNetwork& shard, const Model& model, const ModelPartition& partition, int place,
                DeviceLearning learning)
      : RankDevice(*shard.network),
        network_(*shard.network),
        model_(model),
        partition_(partition.spatial),
        learning_(std::move(learning)),
        map_(network_),
        halos_(network_, model, partition.spatial, place) {
    if (reshards_to_batch(partition, model))
      resharding_ = std::make_unique<SpatialToBatchResharding>(network_, model, partition, place);
    for (std::size_t i = 0; i < model.layers.size(); ++i) {
      if (model.layers[i].kind == LayerKind::batch_norm && partition.statistics_over > 1)
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
    if (partition_.separate_border && pass != Work::update)
      return time_work([&] { run_segments(network_, pass, segments); });
    // A layer's forward pass runs in its first segment, its backward pass in its second (layer_segments.hpp).
    const int which = pass == Work::forward ? 0 : 1;
    const int first = (segments.first - which + kSegmentsPerLayer - 1) / kSegmentsPerLayer;
    const int last = (segments.last - 1 - which + kSegmentsPerLayer) / kSegmentsPerLayer;
    const LayerRange all{0, static_cast<int>(model_.layers.size())};
    time_work([&] { run_layers(network_, pass, pass == Work::update ? all : LayerRange{first, last}); });
  }

  CollectiveBinding bind_collective(const Collective& collective) override {
    if (collective.kind == Collective::Kind::exchange)
      return halos_.bind(collective, [this](const auto& work) { time_work(work); });
    if (collective.kind == Collective::Kind::all_to_all) return bind_resharding(collective);
    if (collective.buffer.array == Array::statistics) return bind_statistics(collective);
    return RankDevice::bind_collective(collective);
  }

 protected:
  std::span<float> array(Array array) override { return array_of(network_, array); }
  Slice stored(const Slice& of_model) const override { return map_.stored(of_model); }

 private:
  CollectiveBinding bind_resharding(const Collective& collective) {
    float* memory = nullptr;
    CollectiveBinding work = halos_.bind_staging(collective, memory);
    resharding_->add_hooks(work, pass_ == Work::forward, memory);
    return work;
  }

  CollectiveBinding bind_statistics(const Collective& collective) {
    LayerKernel& kernel = network_.kernel(collective.layer);
    return bind_layer_sum(kernel, pass_ == Work::forward ? Pass::forward : Pass::backward_data, collective);
  }

  Network& network_;
  const Model& model_;
  SpatialPartition partition_;
  DeviceLearning learning_;
  ParameterLayout map_;
  Work pass_ = Work::forward;  ///< the pass that was computed last
  HaloExchanges halos_;
  std::unique_ptr<SpatialToBatchResharding> resharding_;
};

}  // namespace

NetworkOptions spatial_options(const SpatialShard& part, const Model& model, const ModelPartition& partition,
                               NetworkOptions options) {
  const int ways = device_count(partition.spatial.parts);
  const bool all_whole = partition.spatial.whole_from == 0;
  options.batch = all_whole ? partition.micro_batch / ways : partition.micro_batch;
  if (reshards_to_batch(partition, model)) {
    options.part.whole_from = partition.spatial.whole_from;
    options.part.whole_batch = partition.micro_batch / ways;
  }
  options.part.spatial_shard = &part;
  options.part.statistics_replicas = partition.statistics_over > 1 ? partition.statistics_over / ways : 0;
  return options;
}

SpatialNetwork spatial_network(Backend& backend, const Model& model, const ModelPartition& partition,
                               int place, const NetworkOptions& options) {
  SpatialNetwork shard{std::make_unique<SpatialShard>(spatial_shard(model, partition.spatial, place)),
                       nullptr};
  shard.network = std::make_unique<Network>(backend, shard.part->model,
                                            spatial_options(*shard.part, model, partition, options));
  return shard;
}

std::unique_ptr<RankDevice> spatial_device(const SpatialNetwork& shard, const Model& model,
                                           const ModelPartition& partition, int place,
                                           DeviceLearning learning) {
  return std::make_unique<SpatialDevice>(shard, model, partition, place, std::move(learning));
}

}  // namespace stepcast
