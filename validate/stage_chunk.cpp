#include "validate/stage_chunk.hpp"

#include <algorithm>

#include "strategies/pieces.hpp"
#include "validate/network_passes.hpp"

namespace stepcast {

StageChunk::StageChunk(const ChunkNetworks& networks, const LayerRange& layers, std::int64_t micro_batch,
                       std::vector<Slice> owned, Mirror* mirror)
    : networks_(networks),
      mirror_(mirror),
      layers_(layers),
      map_(networks.first()),
      owned_(std::move(owned)),
      before_(crossing_at(networks.first().model(), layers.first, micro_batch)),
      after_(crossing_at(networks.first().model(), layers.last, micro_batch)),
      on_device_(layers.first, before_, after_, networks.of_micro_batch.size()),
      held_(networks.of_micro_batch.size()) {
  for (Held& one : held_) {
    one.values.resize(before_.size);
    one.errors.resize(after_.size);
  }
  sent_values_.resize(after_.size);
  sent_errors_.resize(before_.size);
}

void StageChunk::begin() {
  network().reset();
  forward_ = backward_ = 0;
}

void StageChunk::compute(Work pass, LayerRange pieces) {
  std::size_t& turn = pass == Work::forward ? forward_ : backward_;
  current_ = networks_.of_micro_batch.at(turn).get();
  run_pieces(*current_, pass, pieces);
  const LayerRange all = pieces_of(layers_);
  if (pass == Work::forward ? pieces.last == all.last : pieces.first == all.first) ++turn;
}

void StageChunk::compute_again(LayerRange pieces) {
  current_ = networks_.of_micro_batch.at(backward_).get();
  run_pieces(*current_, Work::forward, pieces);
}

void StageChunk::update() {
  forward_ = backward_ = 0;
  if (owned_.empty()) return run_layers(network(), Work::update, layers_);
  network().begin_update();
  for (const Slice& slice : owned_) {
    const auto begin = static_cast<std::size_t>(slice.begin), end = static_cast<std::size_t>(slice.end);
    network().update(begin, end, network().all_parameters().gradient + begin);
  }
  const ParameterView& all = network().all_parameters();
  network().backend().clear(all.gradient, all.elements);  // sums of the next step's micro-batches
}

std::span<float> StageChunk::outgoing_values() {
  const std::size_t turn = forward_ - 1;
  Network& network = *networks_.of_micro_batch.at(turn);
  for (const Crossing::Place& place : after_.places) {
    float* target = sent_values_.data() + place.begin;
    if (is_own(place)) {
      network.kernel(static_cast<std::size_t>(place.source)).output().copy_to(target);
    } else {
      const float* from = held_[turn].values.data() + before_.of(place.source).begin;
      std::copy_n(from, place.size, target);
    }
  }
  return sent_values_;
}

/// Of what is read here and in later stages.
std::span<float> StageChunk::outgoing_errors() {
  const std::size_t turn = backward_ - 1;
  for (const Crossing::Place& place : before_.places)
    networks_.of_micro_batch.at(turn)->write_error(place.source,
                                                   {sent_errors_.data() + place.begin, place.size});
  for (const Crossing::Place& place : after_.places) {
    if (is_own(place)) continue;
    const float* from = held_[turn].errors.data() + place.begin;
    float* sum = sent_errors_.data() + before_.of(place.source).begin;
    for (std::size_t i = 0; i < place.size; ++i) sum[i] += from[i];
  }
  return sent_errors_;
}

std::span<float> StageChunk::part(const Buffer& buffer) const {
  const ParameterView& all = network().all_parameters();
  const Slice slice = map_.stored(buffer.elements);
  const bool values = buffer.array == Array::parameters;
  float* array = mirror_ == nullptr ? (values ? all.value : all.gradient)
                                    : (values ? mirror_->parameters() : mirror_->gradients()).data();
  return {array + slice.begin, array + slice.end};
}

std::size_t StageChunk::crossing_floats(bool values) const {
  return values ? on_device_.values_size() : on_device_.errors_size();
}

void StageChunk::pack(bool values, float* to) {
  if (values) return on_device_.pack_values(*networks_.of_micro_batch.at(forward_ - 1), forward_ - 1, to);
  on_device_.pack_errors(*networks_.of_micro_batch.at(backward_ - 1), backward_ - 1, to);
}

void StageChunk::unpack(bool values, const float* from) {
  if (values) return on_device_.unpack_values(*networks_.of_micro_batch.at(forward_), forward_, from);
  on_device_.unpack_errors(*networks_.of_micro_batch.at(backward_), backward_, from);
}

void StageChunk::values_arrived() {
  Network& network = *networks_.of_micro_batch.at(forward_);
  for (const Crossing::Place& place : before_.places) {
    if (Tensor* tensor = network.received(place.source))
      tensor->copy_from(held_[forward_].values.data() + place.begin);
  }
}

void StageChunk::errors_arrived() {
  Network& network = *networks_.of_micro_batch.at(backward_);
  for (const Crossing::Place& place : after_.places) {
    if (!is_own(place)) continue;
    if (Tensor* tensor = network.outside_gradient(static_cast<std::size_t>(place.source)))
      tensor->copy_from(held_[backward_].errors.data() + place.begin);
  }
}

}  // namespace stepcast
