#include <algorithm>
#include <mutex>

#include "kernels/stopwatch.hpp"
#include "validate/checkpoint.hpp"
#include "validate/rank_device.hpp"
#include "validate/sleep_until.hpp"

namespace stepcast {
namespace {

class KernelDevice : public RankDevice, private Arrays {
 public:
  KernelDevice(Network& network, DeviceLearning learning)
      : network_(network), map_(network), learning_(std::move(learning)) {}

  void begin() override {
    network_.reset();
    if (learning_.compresses && padding_.empty()) find_padding();
    if (learning_.start) learning_.start(network_);
    const std::lock_guard lock(made_mutex_);
    made_.clear();
    compressed_.clear();
    const std::span<const float> parameters = parameters_of_network();
    first_.assign(parameters.begin(), parameters.end());
    steps_ = 0;
    mini_batch_begun_ = false;
  }

  void compute(Work pass, LayerRange layers) override {
    if (layers.empty()) return;
    if (pass == Work::forward && layers.first == 0 && !mini_batch_begun_ && learning_.next_batch)
      learning_.next_batch();
    if (pass != Work::update && layers.first == 0) mini_batch_begun_ = pass == Work::forward;
    const Instant begin = now();
    const auto first = static_cast<std::size_t>(layers.first), last = static_cast<std::size_t>(layers.last);
    switch (pass) {
      case Work::forward:
        for (std::size_t i = first; i < last; ++i) run(i, Pass::forward);
        break;
      case Work::backward:
        for (std::size_t i = last; i-- > first;) {
          run(i, Pass::backward_data);
          run(i, Pass::backward_weights);
        }
        break;
      case Work::update:
        update(first, last);
        break;
    }
    book(begin);
  }

  bool calculate(const Arithmetic& arithmetic) override {
    const Instant begin = now();
    arithmetic(*this);
    book(begin);
    return true;
  }

  void touch_arrays(double arrays, double) override {
    const Instant begin = now();
    const std::span<float> parameters = array(Array::parameters);
    scratch_.resize(parameters.size());
    // Of three arrays two are read and one is written.
    for (double left = arrays / 3; left > 0; left -= 1) {
      const auto share =
          static_cast<std::size_t>(std::min(1.0, left) * static_cast<double>(parameters.size()));
      for (std::size_t i = 0; i < share; ++i) scratch_[i] = 0.5f * scratch_[i] + parameters[i];
    }
    book(begin);
  }

  void pause(double seconds) override { sleep_until(now().wall + seconds); }

  std::span<float> outgoing(const Message& message) override { return travelling(message.buffer); }
  std::span<float> incoming(const Message& message) override { return travelling(message.buffer); }

  CollectiveWork work_of(const Collective& collective) override {
    const Buffer& buffer = collective.buffer;
    if (buffer.codec.kind == Compression::none) return RankDevice::work_of(collective);
    CompressedGradient& gradient = compressed(buffer.codec, buffer.elements);
    const auto sum_share = [&gradient](std::size_t phase) {
      if (phase == 0) gradient.sum_share();
    };
    return {gradient.wire(), {}, sum_share, {}, stored(buffer.elements).size()};
  }

 protected:
  std::span<float> array(Array array) override {
    const ParameterView& all = network_.all_parameters();
    if (array == Array::parameters) return parameters_of_network();
    if (array == Array::gradients) return {all.gradient, all.elements};
    if (array < Array::update || array > Array::change) return {};
    const std::lock_guard lock(made_mutex_);
    std::vector<float>& made = made_[array];
    const bool as_parameters = array == Array::center || array == Array::model;
    if (made.empty() && as_parameters) made = first_;
    made.resize(all.elements);
    return made;
  }
  Slice stored(const Slice& of_model) const override { return map_.stored(of_model); }

 private:
  std::span<float> travelling(const Buffer& buffer) {
    if (buffer.codec.kind == Compression::none || buffer.elements.size() == 0) return memory(buffer);
    return compressed(buffer.codec, buffer.elements).wire();
  }
  CompressedGradient& compressed(const Codec& codec, const Slice& elements) override {
    const std::lock_guard lock(made_mutex_);
    const Slice slice = stored(elements);
    const auto [known, is_new] =
        compressed_.try_emplace(elements.begin, codec, slice.size(), codec.owners > 1 ? learning_.place : 0);
    if (is_new) known->second.set_padding(padding_in(slice));
    return known->second;
  }

  /// What stays 0 when all parameters are written.
  void find_padding() {
    const Parameters values = read_parameters(network_);
    Parameters ones = values;
    for (auto& array : ones) std::ranges::fill(array, 1.0F);
    write_parameters(network_, ones);
    const std::span<const float> all = parameters_of_network();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] == 0) padding_.push_back(static_cast<std::int64_t>(i));
    }
    write_parameters(network_, values);
  }
  std::vector<std::int64_t> padding_in(const Slice& slice) const {
    std::vector<std::int64_t> inside;
    for (auto i = std::ranges::lower_bound(padding_, slice.begin); i != padding_.end() && *i < slice.end; ++i)
      inside.push_back(*i - slice.begin);
    return inside;
  }

  std::span<float> of(Array one) override { return array(one); }
  std::span<float> of(Array one, const Slice& elements) override {
    const Slice slice = stored(elements);
    return array(one).subspan(static_cast<std::size_t>(slice.begin), static_cast<std::size_t>(slice.size()));
  }
  void descend(Array gradient, const Slice& elements, int summed) override {
    const Slice slice = stored(elements);
    next_step(summed);
    const auto begin = static_cast<std::size_t>(slice.begin), end = static_cast<std::size_t>(slice.end);
    network_.update(begin, end, array(gradient).data() + begin);
  }
  double learning_rate() const override { return learning_.rate.at(steps_ + 1, learning_.summed); }

  std::span<float> parameters_of_network() const {
    return {network_.all_parameters().value, network_.all_parameters().elements};
  }

  void next_step(int summed) {
    network_.begin_update();
    network_.set_rate(learning_.rate.at(++steps_, summed), 1.0 / summed);
  }

  void update(std::size_t first, std::size_t last) {
    next_step(learning_.summed);
    for (const Slice& slice : learning_.owned) {
      const auto begin = static_cast<std::size_t>(slice.begin), end = static_cast<std::size_t>(slice.end);
      network_.update(begin, end, network_.all_parameters().gradient + begin);
    }
    if (!learning_.owned.empty()) return;
    for (std::size_t i = first; i < last; ++i) run(i, Pass::update);
  }

  void run(std::size_t layer, Pass pass) {
    if (network_.has(layer, pass)) network_.run(layer, pass);
  }

  Network& network_;
  ArrayMap map_;
  DeviceLearning learning_;
  std::int64_t steps_ = 0;         ///< of the optimizer
  bool mini_batch_begun_ = false;  ///< it has gone forward through the first layer and not yet back
  std::vector<float> first_;       ///< parameters when the run began
  std::mutex made_mutex_;
  std::map<Array, std::vector<float>> made_;
  std::vector<std::int64_t> padding_;  ///< stored elements that are no parameters, ascending
  std::map<std::int64_t, CompressedGradient> compressed_;  ///< by the first element of the model
  std::vector<float> scratch_;
};

}  // namespace

std::unique_ptr<RankDevice> kernel_device(Network& network, DeviceLearning learning) {
  return std::make_unique<KernelDevice>(network, std::move(learning));
}

}  // namespace stepcast
