#include "runtime/devices/pipeline_stage_chunk.hpp"

#include <algorithm>

#include "models/partition/pipeline_stages.hpp"
#include "models/partition/token_shard.hpp"
#include "runtime/collectives/rank_collectives.hpp"
#include "runtime/devices/rank_device.hpp"
#include "strategies/model_parallel/layer_segments.hpp"

namespace stepcast {

const StageBoundary::Entry& StageBoundary::entry_of(int source) const {
  return *std::find_if(entries.begin(), entries.end(),
                       [source](const Entry& one) { return one.source == source; });
}

StageBoundary boundary_before(const Model& model, int layer, std::int64_t batch) {
  StageBoundary boundary;
  if (layer == 0) return boundary;
  for (const int source : boundary_sources(model, layer)) {
    const Shape& shape = source < 0 ? model.input : model.layers[source].output;
    std::size_t size = batch;
    for (const std::int64_t extent : shape) size *= extent;
    boundary.entries.push_back({source, boundary.size, size});
    boundary.size += size;
  }
  return boundary;
}

void DeviceStageBoundary::pack_values(Network& network, std::size_t micro_batch, float* to) {
  for (const StageBoundary::Entry& entry : after_.entries) {
    if (is_own(entry)) {
      const std::size_t layer = entry.source;
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
    if (Tensor* tensor = network.boundary_output_gradient(entry.source))
      network.backend().copy_in(received + entry.begin, *tensor);
  }
}

float* DeviceStageBoundary::store_received(Network& network, std::shared_ptr<float>& memory,
                                           const float* from, std::size_t size) {
  if (memory == nullptr) memory = network.backend().allocate(size);
  network.backend().device_memory()->copy(from, memory.get(), size);
  return memory.get();
}

PipelineStageChunk::PipelineStageChunk(const ChunkNetworks& networks, const LayerRange& layers,
                                       std::int64_t micro_batch, std::vector<Slice> owned, HostMirror* mirror)
    : networks_(networks),
      mirror_(mirror),
      layers_(layers),
      map_(networks.first()),
      owned_(std::move(owned)),
      before_(boundary_before(networks.first().model(), layers.first, micro_batch)),
      after_(boundary_before(networks.first().model(), layers.last, micro_batch)),
      on_device_(layers.first, before_, after_, networks.of_micro_batch.size()),
      received_(networks.of_micro_batch.size()) {
  for (Received& one : received_) {
    one.values.resize(before_.size);
    one.errors.resize(after_.size);
  }
  sent_values_.resize(after_.size);
  sent_errors_.resize(before_.size);
}

void PipelineStageChunk::begin() {
  network().reset();
  forward_ = backward_ = 0;
  between_passes_ = true;
}

Network& PipelineStageChunk::exchanging(int layer, bool recomputes) const {
  if (!between_passes_ || layer != layers_.first) return *current_;
  return *networks_.of_micro_batch.at(recomputes ? backward_ : forward_);
}

void PipelineStageChunk::compute(Work pass, LayerRange segments) {
  std::size_t& micro_batch = pass == Work::forward ? forward_ : backward_;
  current_ = networks_.of_micro_batch.at(micro_batch).get();
  run_segments(*current_, pass, segments);
  const LayerRange all = segments_of(layers_);
  between_passes_ = pass == Work::forward ? segments.last == all.last : segments.first == all.first;
  if (between_passes_) ++micro_batch;
}

void PipelineStageChunk::recompute(LayerRange segments) {
  current_ = networks_.of_micro_batch.at(backward_).get();
  between_passes_ = false;
  run_segments(*current_, Work::forward, segments);
}

void PipelineStageChunk::update() {
  forward_ = backward_ = 0;
  if (owned_.empty()) return run_layers(network(), Work::update, layers_);
  network().begin_update();
  for (const Slice& slice : owned_) {
    const std::size_t begin = slice.begin, end = slice.end;
    network().update(begin, end, network().all_parameters().gradient + begin);
  }
  const ParameterView& all = network().all_parameters();
  network().backend().clear(all.gradient, all.elements);  // the next step's micro-batches add up from 0
}

std::span<float> PipelineStageChunk::outgoing_values() {
  const std::size_t micro_batch = forward_ - 1;
  Network& network = *networks_.of_micro_batch.at(micro_batch);
  for (const StageBoundary::Entry& entry : after_.entries) {
    float* target = sent_values_.data() + entry.begin;
    if (is_own(entry)) {
      network.kernel(entry.source).output().copy_to(target);
    } else {
      const float* from = received_[micro_batch].values.data() + before_.entry_of(entry.source).begin;
      std::copy_n(from, entry.size, target);
    }
  }
  return sent_values_;
}

/// The error signal of a tensor that later stages read too is the sum of this chunk's and theirs.
std::span<float> PipelineStageChunk::outgoing_errors() {
  const std::size_t micro_batch = backward_ - 1;
  for (const StageBoundary::Entry& entry : before_.entries)
    networks_.of_micro_batch.at(micro_batch)
        ->write_input_gradient(entry.source, {sent_errors_.data() + entry.begin, entry.size});
  for (const StageBoundary::Entry& entry : after_.entries) {
    if (is_own(entry)) continue;
    const float* from = received_[micro_batch].errors.data() + entry.begin;
    float* sum = sent_errors_.data() + before_.entry_of(entry.source).begin;
    for (std::size_t i = 0; i < entry.size; ++i) sum[i] += from[i];
  }
  return sent_errors_;
}

std::span<float> PipelineStageChunk::part(const Buffer& buffer) const {
  const ParameterView& all = network().all_parameters();
  const Slice slice = map_.stored(buffer.elements);
  const bool values = buffer.array == Array::parameters;
  float* array = mirror_ == nullptr ? (values ? all.value : all.gradient)
                                    : (values ? mirror_->parameters() : mirror_->gradients()).data();
  return {array + slice.begin, array + slice.end};
}

std::size_t PipelineStageChunk::boundary_floats(bool values) const {
  return values ? on_device_.values_size() : on_device_.errors_size();
}

void PipelineStageChunk::pack(bool values, float* to) {
  if (values) return on_device_.pack_values(*networks_.of_micro_batch.at(forward_ - 1), forward_ - 1, to);
  on_device_.pack_errors(*networks_.of_micro_batch.at(backward_ - 1), backward_ - 1, to);
}

void PipelineStageChunk::unpack(bool values, const float* from) {
  if (values) return on_device_.unpack_values(*networks_.of_micro_batch.at(forward_), forward_, from);
  on_device_.unpack_errors(*networks_.of_micro_batch.at(backward_), backward_, from);
}

void PipelineStageChunk::on_values_received() {
  Network& network = *networks_.of_micro_batch.at(forward_);
  for (const StageBoundary::Entry& entry : before_.entries) {
    if (Tensor* tensor = network.boundary_input(entry.source))
      tensor->copy_from(received_[forward_].values.data() + entry.begin);
  }
}

void PipelineStageChunk::on_errors_received() {
  Network& network = *networks_.of_micro_batch.at(backward_);
  for (const StageBoundary::Entry& entry : after_.entries) {
    if (!is_own(entry)) continue;
    if (Tensor* tensor = network.boundary_output_gradient(entry.source))
      tensor->copy_from(received_[backward_].errors.data() + entry.begin);
  }
}

namespace {

/// Couples the kernels of tensor-parallel layers: they wait for the sums over the ranks.
void couple_shared(const SharedPart& part, Network& network) {
  for (std::size_t i = 0; i < part.shares.size(); ++i) {
    if (part.shares[i] && network.contains(i)) network.kernel(i).defer_sums();
  }
}

}  // namespace

int ranks_of_samples(const ModelPartition& partition) {
  return partition.ways * partition.tokens.context;
}

int place_in_stage(const ModelPartition& partition, int member) {
  return member % (partition.expert_ways > 1 ? partition.expert_ways : ranks_of_samples(partition));
}

LayerRange layers_of_chunk(const ModelPartition& partition, std::size_t chunk, std::size_t chunks,
                           int stage) {
  return partition.stages.at(chunk * (partition.stages.size() / chunks) + stage);
}

PipelineStageNetworks pipeline_stage_networks(Backend& backend, const Model& model,
                                              const ModelPartition& partition, const StagePosition& at,
                                              NetworkOptions options) {
  const std::uint64_t seed = options.data_seed;
  options.part.accumulate = partition.micro_batches > 1;
  options.part.loss_weight = 1.0 / partition.micro_batches;
  PipelineStageNetworks networks;
  if (ranks_of_samples(partition) > 1)
    networks.part =
        std::make_unique<SharedPart>(token_shard(model, partition.ways, partition.tokens, at.place));
  if (partition.expert_ways > 1)
    networks.part = std::make_unique<SharedPart>(expert_shard(model, partition.expert_ways, at.place));
  options.part.tensor_shard = networks.part.get();
  const Model& own = networks.part ? networks.part->model : model;
  for (std::size_t run = at.stage; run < partition.stages.size(); run += at.stages) {
    options.part.first = partition.stages[run].first;
    options.part.last = partition.stages[run].last;
    options.part.parameters_of = nullptr;
    options.data_seed = seed;
    ChunkNetworks& chunk = networks.chunks.emplace_back();
    for (int i = 0; i < partition.micro_batches; ++i, ++options.data_seed) {
      chunk.of_micro_batch.push_back(std::make_unique<Network>(backend, own, options));
      options.part.parameters_of = chunk.of_micro_batch.front().get();
      if (networks.part) couple_shared(*networks.part, *chunk.of_micro_batch.back());
    }
  }
  return networks;
}

std::vector<std::vector<Slice>> owned_slices(const Plan& plan, RankId rank,
                                             const PipelineStageNetworks& networks, int stage) {
  std::vector<std::vector<Slice>> owned;
  for (std::size_t i = 0; i < networks.chunks.size(); ++i) {
    const LayerRange layers = layers_of_chunk(plan.partition, i, networks.chunks.size(), stage);
    owned.push_back(reduce_scattered_slices(plan, rank, ParameterLayout(networks.chunks[i].first()), layers));
  }
  return owned;
}

}  // namespace stepcast
