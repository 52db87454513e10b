#include "runtime/devices/spatial_resharding.hpp"

#include <cstdlib>
#include <utility>

#include "kernels/timing/step_timer.hpp"
#include "models/network/layer.hpp"
#include "models/partition/spatial_shard.hpp"
#include "report/statistics/statistics.hpp"

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
  while (source >= 0 && model.layers[static_cast<std::size_t>(source)].output.size() != dimensions)
    source = model.layers[static_cast<std::size_t>(source)].inputs.front();
  return source < 0 ? model.input : model.layers[static_cast<std::size_t>(source)].output;
}

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
                                                const Collective& exchange, int place) {
  const auto elements = static_cast<std::int64_t>(exchange.buffer.size.value / sizeof(float));
  const bool errors = exchange.buffer.array == Array::errors;
  std::vector<std::vector<HaloBox>> phases;
  for (const Phase& phase : exchange.schedule->phases) {
    phases.emplace_back();
    for (const Edge& edge : *phase.edges) {
      if (edge.source != place && edge.target != place) continue;
      const std::size_t dimension = dimension_between(partition.parts, edge.source, edge.target);
      phases.back().push_back({edge.source == place,
                               halo_box(model, partition, static_cast<std::size_t>(exchange.layer), errors,
                                        edge.target, dimension, edge.source < edge.target),
                               slice_of(*exchange.schedule, phase, edge, 0, elements).begin});
    }
  }
  return phases;
}

namespace {

constexpr int kHostRepeats = 15;

}  // namespace

bool reshards_to_batch(const NetworkSharing& sharing, const Model& model) {
  const std::size_t from = sharing.partition.whole_from;
  return device_count(sharing.partition.parts) > 1 && from > 0 && from < model.layers.size();
}

SpatialToBatchResharding::SpatialToBatchResharding(Network& network, const Model& model,
                                                   const NetworkSharing& sharing, int place)
    : network_(network),
      backend_(network.backend()),
      partition_(sharing.partition),
      place_(place),
      ways_(device_count(partition_.parts)),
      source_(model.layers[partition_.whole_from].inputs.front()),
      samples_(sharing.micro_batch / ways_),
      map_(unflattened_shape(model, source_, partition_)),
      sample_elements_(static_cast<std::size_t>(samples_ * elements(map_))),
      block_elements_(sample_elements_ / static_cast<std::size_t>(ways_)),
      blocks_(backend_.allocate(block_elements_ * static_cast<std::size_t>(ways_))),
      samples_buffer_(backend_.allocate(sample_elements_)),
      scratch_(backend_.allocate(sample_elements_)) {}

BoxMove SpatialToBatchResharding::scatter(int device) const {
  const std::vector<int> place = grid_place(partition_.parts, device);
  BoxMove box{{samples_, map_.front()}, {}, {}};
  Shape whole{samples_};
  whole.insert(whole.end(), map_.begin(), map_.end());
  box.to_stride = row_major_strides(whole);
  for (std::size_t i = 0; i < partition_.parts.size(); ++i) {
    const Rows rows = part_of(map_[i + 1], partition_.parts[i], place[i]);
    box.size.push_back(rows.size());
    box.to_offset += rows.first * box.to_stride[i + 2];
  }
  box.from_stride = row_major_strides(box.size);
  return box;
}

BoxMove SpatialToBatchResharding::gather(int device) const {
  BoxMove box = scatter(device);
  std::swap(box.from_stride, box.to_stride);
  std::swap(box.from_offset, box.to_offset);
  return box;
}

float* SpatialToBatchResharding::block(float* memory, int from, int to) const {
  return memory + static_cast<std::size_t>(from * ways_ + to) * block_elements_;
}

void SpatialToBatchResharding::add_hooks(CollectiveBinding& binding, bool forward, float* memory) {
  const auto last = static_cast<std::size_t>(ways_) - 2;  // an all-to-all has one phase less than ranks
  binding.before_phase = [this, forward, memory](std::size_t phase) {
    backend_.begin_thread();
    if (phase == 0) forward ? pack_parts(memory) : pack_errors(memory);
  };
  binding.after_phase = [this, forward, memory, last](std::size_t phase) {
    if (phase == last) forward ? unpack_samples(memory) : unpack_errors(memory);
  };
}

Seconds SpatialToBatchResharding::host_time(bool forward) {
  const auto memory = backend_.allocate(block_elements_ * static_cast<std::size_t>(ways_ * ways_));
  CollectiveBinding copies;
  add_hooks(copies, forward, memory.get());
  std::vector<double> seconds;
  for (int repeat = 0; repeat < kHostRepeats; ++repeat) {
    network_.step();
    const Instant begin = now();
    copies.before_phase(0);
    copies.after_phase(static_cast<std::size_t>(ways_) - 2);
    seconds.push_back(now().wall - begin.wall);
  }
  return {median_of(seconds)};
}

/// The samples of rank 0 come first, then those of rank 1 and so on, which is the order of blocks (place, 0),
/// (place, 1) and so on.
void SpatialToBatchResharding::pack_parts(float* memory) {
  backend_.copy_out(network_.kernel(static_cast<std::size_t>(source_)).output(), block(memory, place_, 0));
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
  const auto each = static_cast<std::int64_t>(block_elements_);
  backend_.move({.size = {ways_, each}, .from_stride = {ways_ * each, 1}, .to_stride = {each, 1}},
                block(memory, 0, place_), blocks_.get());
  backend_.copy_in(blocks_.get(), *network_.boundary_output_gradient(static_cast<std::size_t>(source_)));
}

}  // namespace stepcast
