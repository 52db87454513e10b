#include <sys/prctl.h>

#include <algorithm>
#include <mutex>

#include "kernels/timing/step_timer.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/memory/parameters.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {
namespace {

class ReplicaDevice : public RankDevice, private Arrays {
 public:
  ReplicaDevice(Network& network, DeviceLearning learning)
      : RankDevice(network), network_(network), map_(network), learning_(std::move(learning)) {}

  void begin() override {
    network_.reset();
    if (learning_.passes) learning_.passes->begin();
    if (learning_.compresses && padding_.empty()) find_padding();
    if (learning_.start) learning_.start(network_);
    const std::lock_guard lock(arrays_mutex_);
    arrays_.clear();
    compressed_.clear();
    const std::span<const float> parameters = parameters_now();
    initial_parameters_.assign(parameters.begin(), parameters.end());
    steps_ = 0;
    mini_batch_begun_ = false;
  }

  void compute(Work pass, LayerRange layers) override {
    if (layers.empty()) return;
    if (learning_.passes && pass != Work::update)
      return time_work([&] { learning_.passes->compute(pass, layers); });
    if (pass == Work::forward && layers.first == 0 && !mini_batch_begun_ && learning_.next_batch)
      learning_.next_batch();
    if (pass != Work::update && layers.first == 0) mini_batch_begun_ = pass == Work::forward;
    time_work([&] {
      if (pass == Work::update) return update(layers);
      learning_.run_pass ? learning_.run_pass(pass, layers) : run_layers(network_, pass, layers);
    });
  }

  bool calculate(const Arithmetic& arithmetic) override {
    finish();
    const Instant begin = now();
    arithmetic(*this);
    if (mirror_) {
      mirror_->unmap();
      mirror_->finish();
    }
    record_since(begin);
    return true;
  }

  void touch_arrays(double arrays, double) override {
    const ParameterView& all = network_.all_parameters();
    if (!scratch_) scratch_ = network_.backend().allocate(all.elements);
    time_work([&] {
      // Each addition reads two arrays and writes one.
      for (double left = arrays / 3; left > 0; left -= 1) {
        const auto share = static_cast<std::size_t>(std::min(1.0, left) * all.elements);
        network_.backend().add(all.value, scratch_.get(), share);
      }
    });
  }

  // Compressed gradients are in host memory on every backend.
  std::span<float> send_buffer(const Message& message) override {
    if (!travels_compressed(message.buffer)) return RankDevice::send_buffer(message);
    return compressed(message.buffer.codec, message.buffer.elements).wire();
  }
  std::span<float> receive_buffer(const Message& message) override {
    if (!travels_compressed(message.buffer)) return RankDevice::receive_buffer(message);
    return compressed(message.buffer.codec, message.buffer.elements).wire();
  }
  void on_received(const Message& message) override {
    if (!travels_compressed(message.buffer)) RankDevice::on_received(message);
  }

  std::int64_t device_floats(const Message& message) override {
    return travels_compressed(message.buffer) ? 0 : RankDevice::device_floats(message);
  }

  CollectiveBinding bind_collective(const Collective& collective) override {
    const Buffer& buffer = collective.buffer;
    const bool within_pass = buffer.array == Array::activations || buffer.array == Array::errors;
    if (learning_.passes && within_pass) return learning_.passes->bind_collective(collective);
    if (buffer.codec.kind == Compression::none) return RankDevice::bind_collective(collective);
    CompressedGradient& gradient = compressed(buffer.codec, buffer.elements);
    const auto sum_share = [&gradient](std::size_t phase) {
      if (phase == 0) gradient.sum_share();
    };
    return {.memory = gradient.wire(),
            .after_phase = sum_share,
            .uncompressed_elements = stored(buffer.elements).size()};
  }

 protected:
  std::span<float> array(Array array) override {
    if (array == Array::parameters || array == Array::gradients) return array_of(network_, array);
    if (array < Array::update || array > Array::change) return {};
    const std::lock_guard lock(arrays_mutex_);
    std::vector<float>& values = arrays_[array];
    const bool as_parameters = array == Array::center || array == Array::model;
    if (values.empty() && as_parameters) values = initial_parameters_;
    values.resize(network_.all_parameters().elements);
    return values;
  }
  Slice stored(const Slice& of_model) const override {
    return map_.stored({of_model.begin - learning_.first_element, of_model.end - learning_.first_element});
  }

 private:
  std::span<const float> parameters_now() {
    const std::span<float> all = array_of(network_, Array::parameters);
    if (mirror_) mirror_->fetch(all, mirror_->device().record_event());
    return all;
  }

  bool travels_compressed(const Buffer& buffer) const {
    return buffer.codec.kind != Compression::none && buffer.elements.size() > 0;
  }
  CompressedGradient& compressed(const Codec& codec, const Slice& elements) override {
    const std::lock_guard lock(arrays_mutex_);
    const Slice slice = stored(elements);
    const auto [known, is_new] =
        compressed_.try_emplace(elements.begin, codec, slice.size(), codec.owners > 1 ? learning_.place : 0);
    if (is_new) known->second.set_padding(padding_in(slice));
    return known->second;
  }

  /// Finds the padding of the parameter memory: elements that stay 0 when all parameters are written.
  void find_padding() {
    const Parameters values = read_parameters(network_);
    Parameters ones = values;
    for (auto& array : ones) std::ranges::fill(array, 1.0F);
    write_parameters(network_, ones);
    const std::span<const float> all = parameters_now();
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i] == 0) padding_.push_back(i);
    }
    write_parameters(network_, values);
  }
  std::vector<std::int64_t> padding_in(const Slice& slice) const {
    std::vector<std::int64_t> inside;
    for (auto i = std::ranges::lower_bound(padding_, slice.begin); i != padding_.end() && *i < slice.end; ++i)
      inside.push_back(*i - slice.begin);
    return inside;
  }

  std::span<float> of(Array one) override {
    return mapped(learning_.part ? part_of(array(one), *learning_.part) : array(one));
  }
  std::span<float> of(Array one, const Slice& elements) override { return mapped(part(one, elements)); }
  std::span<float> mapped(std::span<float> values) {
    if (mirror_) mirror_->map_to_host(values);
    return values;
  }
  static std::span<float> part_of(std::span<float> whole, const Slice& slice) {
    return whole.subspan(slice.begin, slice.size());
  }
  std::span<float> part(Array one, const Slice& elements) { return part_of(array(one), stored(elements)); }
  void descend(Array gradient, const Slice& elements, int summed) override {
    const Slice slice = stored(elements);
    next_step(summed);
    const std::span<float> along = part(gradient, elements);
    if (mirror_) mirror_->unmap();
    network_.update(slice.begin, slice.end, mirror_ ? mirror_->uploaded(along) : along.data());
  }
  void choose_mini_batch(std::int64_t number) override {
    if (learning_.choose_mini_batch) learning_.choose_mini_batch(number);
  }
  double learning_rate() const override { return learning_.rate.at(steps_ + 1, learning_.summed); }

  void next_step(int summed) {
    learning_.begin_update ? learning_.begin_update() : network_.begin_update();
    network_.set_rate(learning_.rate.at(++steps_, summed), 1.0 / summed);
  }

  void update(LayerRange layers) {
    next_step(learning_.summed);
    for (const Slice& slice : learning_.owned) {
      const std::size_t begin = slice.begin, end = slice.end;
      network_.update(begin, end, network_.all_parameters().gradient + begin);
    }
    if (!learning_.owned.empty()) return;
    network_.update_layers(layers.first, layers.last);
  }

  Network& network_;
  ParameterLayout map_;
  DeviceLearning learning_;
  std::int64_t steps_ = 0;                 ///< steps of the optimizer
  bool mini_batch_begun_ = false;          ///< between the forward and the backward pass of the first layer
  std::vector<float> initial_parameters_;  ///< parameters when the run began
  std::mutex arrays_mutex_;
  std::map<Array, std::vector<float>> arrays_;
  std::vector<std::int64_t> padding_;  ///< stored elements that are not parameters, ascending
  std::map<std::int64_t, CompressedGradient> compressed_;  ///< by the first element of the model; host memory
  std::shared_ptr<float> scratch_;                         ///< device memory of touch_arrays
};

}  // namespace

std::unique_ptr<RankDevice> replica_device(Network& network, DeviceLearning learning) {
  return std::make_unique<ReplicaDevice>(network, std::move(learning));
}

namespace {

/// Keeps the time until which it is busy, so that late wake-ups do not add up.
class SleepingDevice : public RankDevice {
 public:
  SleepingDevice(const Workload& workload, std::int64_t elements, SleepNoise noise)
      : workload_(workload),
        noise_(std::move(noise)),
        parameters_(elements, 1.0f),
        gradients_(elements, 1.0f) {
    prctl(PR_SET_TIMERSLACK, 1000UL);  // wake-ups are at most 1 us late instead of 50
  }

  void begin() override { begin_step(0); }
  void begin_step(int step) override {
    if (noise_.training) drawn_ = draw(noise_.noise, noise_.seed, noise_.worker, step, {});
  }
  void compute(Work pass, LayerRange layers) override {
    double seconds = 0;
    for (int i = layers.first; i < layers.last; ++i) {
      const LayerSeconds& layer = workload_.median[i];
      const double taken = pass == Work::forward    ? layer.forward
                           : pass == Work::backward ? layer.backward
                                                    : layer.update;
      seconds += taken * (drawn_.layer_sigma > 0 ? drawn_.layer_factor(i, pass) : 1);
    }
    pause(seconds);
  }
  void touch_arrays(double, double seconds) override { pause(seconds); }
  void pause(double seconds) override {
    const double started = now().wall;
    // A delay of up to kLate is a late wake-up and belongs to the work; a longer one was waiting for
    // something else.
    constexpr double kLate = 500e-6;
    const double begin = started - busy_until_ < kLate ? busy_until_ : started;
    const double taken = drawn_.factor * seconds;
    busy_until_ = begin + taken;
    sleep_until(busy_until_);
    work_time_.wall += taken;
    work_time_.cpu += taken;
  }

 protected:
  std::span<float> array(Array array) override {
    if (array == Array::parameters) return parameters_;
    if (array == Array::gradients) return gradients_;
    return {};
  }
  Slice stored(const Slice& of_model) const override {
    const std::int64_t all = parameters_.size();
    return {std::min(of_model.begin, all), std::min(of_model.end, all)};
  }

 private:
  const Workload& workload_;
  SleepNoise noise_;
  Draw drawn_;
  std::vector<float> parameters_, gradients_;
  double busy_until_ = 0;
};

}  // namespace

std::unique_ptr<RankDevice> sleeping_device(const Workload& workload, std::int64_t elements,
                                            SleepNoise noise) {
  return std::make_unique<SleepingDevice>(workload, elements, std::move(noise));
}

}  // namespace stepcast
