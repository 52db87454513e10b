#include "validate/stage_device.hpp"

#include <algorithm>
#include <deque>

#include "core/error.hpp"
#include "kernels/stopwatch.hpp"
#include "models/stages.hpp"
#include "strategies/pieces.hpp"
#include "strategies/pipeline.hpp"
#include "validate/network_passes.hpp"
#include "validate/sleep_until.hpp"

namespace stepcast {
namespace {

/// What crosses one end of a stage, one source after the other.
struct Crossing {
  struct Place {
    int source = 0;
    std::size_t begin = 0, size = 0;  ///< in the message [floats]
  };
  std::vector<Place> places;
  std::size_t size = 0;
};

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

/// A run of layers of this stage: its networks, and how far micro-batches are through it.
class Chunk {
 public:
  Chunk(const ChunkNetworks& networks, const LayerRange& layers, std::int64_t micro_batch)
      : networks_(networks),
        layers_(layers),
        map_(networks.first()),
        before_(crossing_at(networks.first().model(), layers.first, micro_batch)),
        after_(crossing_at(networks.first().model(), layers.last, micro_batch)),
        held_(networks.of_micro_batch.size()) {
    for (Held& one : held_) {
      one.values.resize(before_.size);
      one.errors.resize(after_.size);
    }
    sent_values_.resize(after_.size);
    sent_errors_.resize(before_.size);
  }

  bool has(int layer) const { return layer >= layers_.first && layer < layers_.last; }
  Network& network() const { return networks_.first(); }
  const ArrayMap& map() const { return map_; }

  void begin() {
    network().reset();
    forward_ = backward_ = 0;
  }

  void compute(Work pass, LayerRange pieces) {
    std::size_t& turn = pass == Work::forward ? forward_ : backward_;
    run_layers(*networks_.of_micro_batch.at(turn), pass, layers_of(pieces));
    const LayerRange all = pieces_of(layers_);
    if (pass == Work::forward ? pieces.last == all.last : pieces.first == all.first) ++turn;
  }

  /// @param owned  stored parameters to update; empty: all
  void update(const std::vector<Slice>& owned) {
    forward_ = backward_ = 0;
    if (owned.empty()) return run_layers(network(), Work::update, layers_);
    network().begin_update();
    for (const Slice& slice : owned) {
      const auto begin = static_cast<std::size_t>(slice.begin), end = static_cast<std::size_t>(slice.end);
      network().update(begin, end, network().all_parameters().gradient + begin);
    }
    const ParameterView& all = network().all_parameters();
    network().backend().clear(all.gradient, all.elements);  // sums of the next step's micro-batches
  }

  std::span<float> outgoing_values() {
    gather_values(forward_ - 1);
    return sent_values_;
  }
  std::span<float> outgoing_errors() {
    gather_errors(backward_ - 1);
    return sent_errors_;
  }
  std::span<float> incoming_values() { return held_.at(forward_).values; }
  std::span<float> incoming_errors() { return held_.at(backward_).errors; }

  void values_arrived() {
    Network& network = *networks_.of_micro_batch.at(forward_);
    for (const Crossing::Place& place : before_.places) {
      if (Tensor* tensor = network.received(place.source))
        tensor->copy_from(held_[forward_].values.data() + place.begin);
    }
  }
  void errors_arrived() {
    Network& network = *networks_.of_micro_batch.at(backward_);
    for (const Crossing::Place& place : after_.places) {
      if (!is_own(place)) continue;
      if (Tensor* tensor = network.outside_gradient(static_cast<std::size_t>(place.source)))
        tensor->copy_from(held_[backward_].errors.data() + place.begin);
    }
  }

 private:
  /// What came in for one micro-batch.
  struct Held {
    std::vector<float> values, errors;
  };

  static LayerRange layers_of(LayerRange pieces) {
    return {pieces.first / kPieces, (pieces.last + kPieces - 1) / kPieces};
  }

  /// Of a layer of this chunk; others only pass through it.
  bool is_own(const Crossing::Place& place) const { return place.source >= layers_.first; }

  static const Crossing::Place& place_of(int source, const Crossing& crossing) {
    return *std::find_if(crossing.places.begin(), crossing.places.end(),
                         [source](const Crossing::Place& one) { return one.source == source; });
  }

  void gather_values(std::size_t turn) {
    Network& network = *networks_.of_micro_batch.at(turn);
    for (const Crossing::Place& place : after_.places) {
      float* target = sent_values_.data() + place.begin;
      if (is_own(place)) {
        network.kernel(static_cast<std::size_t>(place.source)).output().copy_to(target);
      } else {
        const float* from = held_[turn].values.data() + place_of(place.source, before_).begin;
        std::copy_n(from, place.size, target);
      }
    }
  }

  /// Of what is read here and in later stages.
  void gather_errors(std::size_t turn) {
    std::fill(sent_errors_.begin(), sent_errors_.end(), 0.0f);
    for (const Crossing::Place& place : after_.places) {
      if (is_own(place)) continue;
      const float* from = held_[turn].errors.data() + place.begin;
      std::copy_n(from, place.size, sent_errors_.data() + place_of(place.source, before_).begin);
    }
    for (const Crossing::Place& place : before_.places)
      networks_.of_micro_batch.at(turn)->add_error(place.source, sent_errors_.data() + place.begin);
  }

  const ChunkNetworks& networks_;
  LayerRange layers_;
  ArrayMap map_;
  Crossing before_, after_;
  std::vector<Held> held_;
  std::vector<float> sent_values_, sent_errors_;
  std::size_t forward_ = 0, backward_ = 0;  ///< turns of this step that are through
};

class StageDevice : public RankDevice {
 public:
  StageDevice(const StageNetworks& networks, const NetworkSharing& sharing, int stage,
              std::vector<Slice> owned)
      : RankDevice(networks.chunks.front().first()), owned_(std::move(owned)) {
    if (mirror_ && networks.chunks.size() > 1)
      throw InputError("several chunks of layers a stage train on CPUs alone");
    const auto stages = sharing.stages.size() / networks.chunks.size();
    for (std::size_t i = 0; i < networks.chunks.size(); ++i) {
      chunks_.emplace_back(networks.chunks[i],
                           sharing.stages.at(i * stages + static_cast<std::size_t>(stage)),
                           sharing.micro_batch);
    }
  }

  void begin() override {
    for (Chunk& chunk : chunks_) chunk.begin();
  }

  void compute(Work pass, LayerRange pieces) override {
    last_ = &chunk_with(pieces.first / kPieces);
    timed([&] { pass == Work::update ? last_->update(owned_) : last_->compute(pass, pieces); });
  }

  bool calculate(const Arithmetic&) override { return false; }
  void touch_arrays(double, double) override {}
  void pause(double seconds) override { sleep_until(now().wall + seconds); }

  /// Of the chunk that has just computed.
  std::span<float> outgoing(const Message& message) override {
    const Array array = message.buffer.array;
    if (array != Array::activations && array != Array::errors) return RankDevice::outgoing(message);
    finish();
    const Instant begin = now();
    const auto sent = array == Array::activations ? last_->outgoing_values() : last_->outgoing_errors();
    book(begin);
    return sent;
  }

  std::span<float> incoming(const Message& message) override {
    const Array array = message.buffer.array;
    if (array == Array::activations) return chunk_for(message).incoming_values();
    if (array == Array::errors) return chunk_for(message).incoming_errors();
    return RankDevice::incoming(message);
  }

  void arrived(const Message& message) override {
    const Array array = message.buffer.array;
    if (array != Array::activations && array != Array::errors) return RankDevice::arrived(message);
    finish();
    const Instant begin = now();
    array == Array::activations ? chunk_for(message).values_arrived() : chunk_for(message).errors_arrived();
    book(begin);
  }

  /// Gradients and parameters are numbered in each chunk.
  CollectiveWork work_of(const Collective& collective) override {
    if (mirror_) return RankDevice::work_of(collective);
    Chunk& chunk = chunk_with(collective.layer);
    const ParameterView& all = chunk.network().all_parameters();
    const Slice slice = chunk.map().stored(collective.buffer.elements);
    float* array = collective.buffer.array == Array::parameters ? all.value : all.gradient;
    return {.memory = {array + slice.begin, array + slice.end}};
  }

 protected:
  std::span<float> array(Array array) override { return array_of(chunks_.front().network(), array); }
  Slice stored(const Slice& of_model) const override { return chunks_.front().map().stored(of_model); }

 private:
  Chunk& chunk_with(int layer) {
    return *std::find_if(chunks_.begin(), chunks_.end(),
                         [layer](const Chunk& one) { return one.has(layer); });
  }
  Chunk& chunk_for(const Message& message) {
    return chunks_.at(static_cast<std::size_t>(chunk_of_tag(message.tag)));
  }

  std::vector<Slice> owned_;
  std::deque<Chunk> chunks_;
  Chunk* last_ = nullptr;
};

}  // namespace

StageNetworks stage_networks(Backend& backend, const Model& model, const NetworkSharing& sharing, int stage,
                             int stages, NetworkOptions options) {
  const std::uint64_t seed = options.data_seed;
  options.part.accumulate = sharing.micro_batches > 1;
  options.part.loss_weight = 1.0 / sharing.micro_batches;
  StageNetworks networks;
  for (std::size_t run = static_cast<std::size_t>(stage); run < sharing.stages.size();
       run += static_cast<std::size_t>(stages)) {
    options.part.first = static_cast<std::size_t>(sharing.stages[run].first);
    options.part.last = static_cast<std::size_t>(sharing.stages[run].last);
    options.part.shares = nullptr;
    options.data_seed = seed;
    ChunkNetworks& chunk = networks.chunks.emplace_back();
    for (int i = 0; i < sharing.micro_batches; ++i, ++options.data_seed) {
      chunk.of_micro_batch.push_back(std::make_unique<Network>(backend, model, options));
      options.part.shares = chunk.of_micro_batch.front().get();
    }
  }
  return networks;
}

std::unique_ptr<RankDevice> stage_device(const StageNetworks& networks, const NetworkSharing& sharing,
                                         int stage, std::vector<Slice> owned) {
  return std::make_unique<StageDevice>(networks, sharing, stage, std::move(owned));
}

}  // namespace stepcast
