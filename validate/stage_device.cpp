#include "validate/stage_device.hpp"

#include <algorithm>

#include "kernels/stopwatch.hpp"
#include "models/stages.hpp"
#include "strategies/pieces.hpp"
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

class StageDevice : public RankDevice {
 public:
  StageDevice(const StageNetworks& networks, const NetworkSharing& sharing, int stage,
              std::vector<Slice> owned)
      : networks_(networks),
        owned_(std::move(owned)),
        layers_(sharing.stages.at(static_cast<std::size_t>(stage))),
        map_(networks.first()),
        before_(crossing_at(networks.first().model(), layers_.first, sharing.micro_batch)),
        after_(crossing_at(networks.first().model(), layers_.last, sharing.micro_batch)),
        held_(networks.of_micro_batch.size()) {
    for (Held& one : held_) {
      one.values.resize(before_.size);
      one.errors.resize(after_.size);
    }
    sent_values_.resize(after_.size);
    sent_errors_.resize(before_.size);
  }

  void begin() override {
    networks_.first().reset();
    forward_ = backward_ = 0;
  }

  void compute(Work pass, LayerRange pieces) override {
    const Instant begin = now();
    if (pass == Work::update) {
      update();
      forward_ = backward_ = 0;
    } else {
      std::size_t& turn = pass == Work::forward ? forward_ : backward_;
      run_layers(*networks_.of_micro_batch.at(turn), pass, layers_of(pieces));
      const LayerRange all = pieces_of(layers_);
      if (pass == Work::forward ? pieces.last == all.last : pieces.first == all.first) ++turn;
    }
    book(begin);
  }

  bool calculate(const Arithmetic&) override { return false; }
  void touch_arrays(double, double) override {}
  void pause(double seconds) override { sleep_until(now().wall + seconds); }

  std::span<float> outgoing(const Buffer& buffer) override {
    if (buffer.array != Array::activations && buffer.array != Array::errors)
      return RankDevice::outgoing(buffer);
    const Instant begin = now();
    buffer.array == Array::activations ? gather_values(forward_ - 1) : gather_errors(backward_ - 1);
    book(begin);
    return buffer.array == Array::activations ? sent_values_ : sent_errors_;
  }

  std::span<float> incoming(const Buffer& buffer) override {
    if (buffer.array == Array::activations) return held_.at(forward_).values;
    if (buffer.array == Array::errors) return held_.at(backward_).errors;
    return RankDevice::incoming(buffer);
  }

  void arrived(const Buffer& buffer) override {
    const Instant begin = now();
    if (buffer.array == Array::activations) {
      Network& network = *networks_.of_micro_batch.at(forward_);
      for (const Crossing::Place& place : before_.places) {
        if (Tensor* tensor = network.received(place.source))
          tensor->copy_from(held_[forward_].values.data() + place.begin);
      }
    } else if (buffer.array == Array::errors) {
      Network& network = *networks_.of_micro_batch.at(backward_);
      for (const Crossing::Place& place : after_.places) {
        if (!is_own(place)) continue;
        if (Tensor* tensor = network.outside_gradient(static_cast<std::size_t>(place.source)))
          tensor->copy_from(held_[backward_].errors.data() + place.begin);
      }
    }
    book(begin);
  }

 protected:
  std::span<float> array(Array array) override {
    const ParameterView& all = networks_.first().all_parameters();
    if (array == Array::parameters) return {all.value, all.elements};
    if (array == Array::gradients) return {all.gradient, all.elements};
    return {};
  }
  Slice stored(const Slice& of_model) const override { return map_.stored(of_model); }

 private:
  /// What came in for one micro-batch.
  struct Held {
    std::vector<float> values, errors;
  };

  static LayerRange layers_of(LayerRange pieces) {
    return {pieces.first / kPieces, (pieces.last + kPieces - 1) / kPieces};
  }

  void update() {
    Network& network = networks_.first();
    if (owned_.empty()) return run_layers(network, Work::update, layers_);
    network.begin_update();
    for (const Slice& slice : owned_) {
      const auto begin = static_cast<std::size_t>(slice.begin), end = static_cast<std::size_t>(slice.end);
      network.update(begin, end, network.all_parameters().gradient + begin);
    }
    std::ranges::fill(array(Array::gradients), 0.0F);  // sums of the next step's micro-batches
  }

  /// Of a layer of this stage; others only pass through it.
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

  const StageNetworks& networks_;
  std::vector<Slice> owned_;
  LayerRange layers_;
  ArrayMap map_;
  Crossing before_, after_;
  std::vector<Held> held_;
  std::vector<float> sent_values_, sent_errors_;
  std::size_t forward_ = 0, backward_ = 0;  ///< turns of this step that are through
};

}  // namespace

StageNetworks stage_networks(Backend& backend, const Model& model, const NetworkSharing& sharing, int stage,
                             NetworkOptions options) {
  const LayerRange layers = sharing.stages.at(static_cast<std::size_t>(stage));
  options.part.first = static_cast<std::size_t>(layers.first);
  options.part.last = static_cast<std::size_t>(layers.last);
  options.part.accumulate = sharing.micro_batches > 1;
  options.part.loss_weight = 1.0 / sharing.micro_batches;
  StageNetworks networks;
  for (int i = 0; i < sharing.micro_batches; ++i, ++options.data_seed) {
    networks.of_micro_batch.push_back(std::make_unique<Network>(backend, model, options));
    options.part.shares = networks.of_micro_batch.front().get();
  }
  return networks;
}

std::unique_ptr<RankDevice> stage_device(const StageNetworks& networks, const NetworkSharing& sharing,
                                         int stage, std::vector<Slice> owned) {
  return std::make_unique<StageDevice>(networks, sharing, stage, std::move(owned));
}

}  // namespace stepcast
