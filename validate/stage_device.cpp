#include "validate/stage_device.hpp"

#include <algorithm>
#include <deque>
#include <map>

#include "kernels/stopwatch.hpp"
#include "strategies/pieces.hpp"
#include "strategies/pipeline.hpp"
#include "validate/sleep_until.hpp"
#include "validate/stage_chunk.hpp"

namespace stepcast {
namespace {

class StageDevice : public RankDevice {
 public:
  StageDevice(const StageNetworks& networks, const NetworkSharing& sharing, int stage,
              std::vector<std::vector<Slice>> owned, DeviceLearning learning)
      : RankDevice(networks.chunks.front().first()),
        scatters_each_(sharing.sums_every_micro_batch),
        learning_(std::move(learning)) {
    owned.resize(networks.chunks.size());
    for (std::size_t i = 0; i < networks.chunks.size(); ++i) {
      Mirror* mirror = mirror_.get();
      if (mirror != nullptr && i > 0) mirror = &more_mirrors_.emplace_back(networks.chunks[i].first());
      chunks_.emplace_back(networks.chunks[i], layers_of_chunk(sharing, i, networks.chunks.size(), stage),
                           sharing.micro_batch, std::move(owned[i]), mirror);
    }
    if (!sharing.recomputed.empty()) turns_ = sharing.recomputed[static_cast<std::size_t>(stage)];
  }

  void begin() override {
    for (StageChunk& chunk : chunks_) chunk.begin();
    if (learning_.start) learning_.start(chunks_.front().network());
    begin_step(0);
  }

  void begin_step(int step) override {
    if (!learning_.next_step) return;  // always the same data, and the optimizer's own rate
    learning_.next_step();
    const double rate = learning_.rate.at(step + 1, learning_.summed);
    for (const StageChunk& chunk : chunks_) chunk.network().set_rate(rate, 1.0 / learning_.summed);
  }

  void compute(Work pass, LayerRange pieces) override {
    last_ = &chunk_with(pieces.first / kPieces);
    const bool again = pass == Work::forward && before_backward();
    timed([&] {
      if (pass == Work::update) return last_->update();
      again ? last_->compute_again(pieces) : last_->compute(pass, pieces);
    });
  }

  bool calculate(const Arithmetic&) override { return false; }
  void touch_arrays(double, double) override {}
  void pause(double seconds) override { sleep_until(now().wall + seconds); }

  /// Of the chunk that has just computed.
  std::span<float> outgoing(const Message& message) override {
    if (!crosses(message)) return RankDevice::outgoing(message);
    finish();
    const Instant begin = now();
    const auto sent = is_values(message) ? last_->outgoing_values() : last_->outgoing_errors();
    book(begin);
    return sent;
  }

  std::span<float> incoming(const Message& message) override {
    if (!crosses(message)) return RankDevice::incoming(message);
    return is_values(message) ? chunk_for(message).incoming_values() : chunk_for(message).incoming_errors();
  }

  void arrived(const Message& message) override {
    if (!crosses(message)) return RankDevice::arrived(message);
    finish();
    const Instant begin = now();
    is_values(message) ? chunk_for(message).values_arrived() : chunk_for(message).errors_arrived();
    book(begin);
  }

  std::int64_t floats_on_device(const Message& message) override {
    if (!crosses(message)) return RankDevice::floats_on_device(message);
    return mirror_ ? static_cast<std::int64_t>(last_->crossing_floats(is_values(message))) : 0;
  }
  void put_in_parcel(const Message& message, float* to) override {
    if (!crosses(message)) return RankDevice::put_in_parcel(message, to);
    timed([&] { last_->pack(is_values(message), to); });
  }
  void take_from_parcel(const Message& message, const float* from) override {
    if (!crosses(message)) return RankDevice::take_from_parcel(message, from);
    timed([&] { chunk_for(message).unpack(is_values(message), from); });
  }

  /// Gradients and parameters are numbered in each chunk.
  CollectiveWork work_of(const Collective& collective) override {
    StageChunk& chunk = chunk_with(collective.layer);
    if (collective.buffer.array == Array::activations || collective.buffer.array == Array::errors)
      return work_between(chunk, collective);
    if (scatters_each_ && collective.kind == Collective::Kind::reduce_scatter)
      return scatter_of_micro_batch(chunk, chunk.map().stored(collective.buffer.elements));
    return work_on(chunk.part(collective.buffer), chunk.mirror());
  }

 protected:
  std::span<float> array(Array array) override { return array_of(chunks_.front().network(), array); }
  Slice stored(const Slice& of_model) const override { return chunks_.front().map().stored(of_model); }

 private:
  static bool is_values(const Message& message) { return message.buffer.array == Array::activations; }
  static bool crosses(const Message& message) {
    return is_values(message) || message.buffer.array == Array::errors;
  }
  StageChunk& chunk_with(int layer) {
    return *std::ranges::find_if(chunks_, [layer](const StageChunk& one) { return one.has(layer); });
  }
  StageChunk& chunk_for(const Message& message) {
    return chunks_.at(static_cast<std::size_t>(chunk_of_tag(message.tag)));
  }

  /// Whether the turn that has begun is a backward one.
  bool before_backward() const {
    if (turns_.empty()) return false;
    std::size_t through = 0;
    for (const StageChunk& chunk : chunks_) through += chunk.turns();
    return turns_.at(through).pass == Work::backward;
  }

  /// A sum of outputs or error signals of a layer that ranks share.
  CollectiveWork work_between(const StageChunk& chunk, const Collective& collective) {
    LayerKernel& kernel = chunk.current().kernel(static_cast<std::size_t>(collective.layer));
    const bool values = collective.buffer.array == Array::activations;
    return sum_within(kernel, values ? Pass::forward : Pass::backward_data, collective);
  }

  /// What has been added up since the last scatter travels in a copy, as the next micro-batch begins to add
  /// up; the share that this rank owns comes back when the program has waited for it.
  CollectiveWork scatter_of_micro_batch(const StageChunk& chunk, const Slice& slice) {
    Backend& backend = chunk.network().backend();
    float* const sums = chunk.network().all_parameters().gradient;
    const std::shared_ptr<float> copy = spare_memory(backend, slice.size());
    timed([&] {
      backend.move({.size = {slice.size()}, .from_stride = {1}, .to_stride = {1}}, sums + slice.begin,
                   copy.get());
      backend.clear(sums + slice.begin, static_cast<std::size_t>(slice.size()));
    });
    CollectiveWork work = work_on_backend({copy.get(), static_cast<std::size_t>(slice.size())});
    work.waited = [this, &chunk, &backend, sums, slice, copy] {
      timed([&] {
        for (const Slice& owned : chunk.owned()) {
          const std::int64_t first = std::max(owned.begin, slice.begin),
                             last = std::min(owned.end, slice.end);
          if (first < last)
            backend.add(copy.get() + first - slice.begin, sums + first,
                        static_cast<std::size_t>(last - first));
        }
      });
      spare_.emplace(slice.size(), copy);
    };
    return work;
  }

  /// Of the backend; what a scatter is through with is used again.
  std::shared_ptr<float> spare_memory(Backend& backend, std::int64_t elements) {
    const auto found = spare_.find(elements);
    if (found == spare_.end()) return backend.allocate(static_cast<std::size_t>(elements));
    std::shared_ptr<float> memory = std::move(found->second);
    spare_.erase(found);
    return memory;
  }

  bool scatters_each_;
  DeviceLearning learning_;
  std::vector<Turn> turns_;          ///< where forward passes are computed again
  std::deque<Mirror> more_mirrors_;  ///< of all chunks but the first
  std::deque<StageChunk> chunks_;
  StageChunk* last_ = nullptr;
  std::multimap<std::int64_t, std::shared_ptr<float>> spare_;  ///< by how many elements they hold
};

}  // namespace

std::unique_ptr<RankDevice> stage_device(const StageNetworks& networks, const NetworkSharing& sharing,
                                         int stage, std::vector<std::vector<Slice>> owned,
                                         DeviceLearning learning) {
  return std::make_unique<StageDevice>(networks, sharing, stage, std::move(owned), std::move(learning));
}

}  // namespace stepcast
