#include <algorithm>
#include <deque>
#include <map>
#include <optional>

#include "kernels/timing/step_timer.hpp"
#include "runtime/devices/pipeline_stage_chunk.hpp"
#include "runtime/devices/token_exchanges.hpp"
#include "strategies/model_parallel/layer_segments.hpp"
#include "strategies/model_parallel/pipeline_stage.hpp"

namespace stepcast {
namespace {

class PipelineStageDevice : public RankDevice {
 public:
  PipelineStageDevice(const PipelineStageNetworks& networks, const ModelPartition& partition, int stage,
                      std::vector<std::vector<Slice>> owned, DeviceLearning learning)
      : RankDevice(networks.chunks.front().first()),
        scatters_each_(partition.sums_every_micro_batch),
        learning_(std::move(learning)) {
    owned.resize(networks.chunks.size());
    for (std::size_t i = 0; i < networks.chunks.size(); ++i) {
      HostMirror* mirror = mirror_.get();
      if (mirror != nullptr && i > 0) mirror = &more_mirrors_.emplace_back(networks.chunks[i].first());
      chunks_.emplace_back(networks.chunks[i], layers_of_chunk(partition, i, networks.chunks.size(), stage),
                           partition.micro_batch, std::move(owned[i]), mirror);
    }
    if (!partition.recomputed.empty()) schedule_ = partition.recomputed[stage];
    if (partition.tokens.by_tensor) token_sums_.emplace(chunks_.front().network(), *networks.part);
  }

  void begin() override {
    for (PipelineStageChunk& chunk : chunks_) chunk.begin();
    if (learning_.start) learning_.start(chunks_.front().network());
    begin_step(0);
  }

  void begin_step(int step) override {
    // In timed runs the data never change, and the optimizer keeps its own rate.
    if (!learning_.next_step) return;
    learning_.next_step();
    const double rate = learning_.rate.at(step + 1, learning_.summed);
    for (const PipelineStageChunk& chunk : chunks_) chunk.network().set_rate(rate, 1.0 / learning_.summed);
  }

  void compute(Work pass, LayerRange segments) override {
    last_ = &chunk_with(segments.first / kSegmentsPerLayer);
    const bool recomputes = pass == Work::forward && is_before_backward();
    time_work([&] {
      if (pass == Work::update) return last_->update();
      recomputes ? last_->recompute(segments) : last_->compute(pass, segments);
    });
  }

  /// A boundary message comes from the chunk that has just computed.
  std::span<float> send_buffer(const Message& message) override {
    if (!crosses_boundary(message)) return RankDevice::send_buffer(message);
    finish();
    const Instant begin = now();
    const auto sent = is_values(message) ? last_->outgoing_values() : last_->outgoing_errors();
    record_since(begin);
    return sent;
  }

  std::span<float> receive_buffer(const Message& message) override {
    if (!crosses_boundary(message)) return RankDevice::receive_buffer(message);
    return is_values(message) ? chunk_for(message).incoming_values() : chunk_for(message).incoming_errors();
  }

  void on_received(const Message& message) override {
    if (!crosses_boundary(message)) return RankDevice::on_received(message);
    finish();
    const Instant begin = now();
    is_values(message) ? chunk_for(message).on_values_received() : chunk_for(message).on_errors_received();
    record_since(begin);
  }

  std::int64_t device_floats(const Message& message) override {
    if (!crosses_boundary(message)) return RankDevice::device_floats(message);
    return mirror_ ? last_->boundary_floats(is_values(message)) : 0;
  }
  void copy_to_payload(const Message& message, float* to) override {
    if (!crosses_boundary(message)) return RankDevice::copy_to_payload(message, to);
    time_work([&] { last_->pack(is_values(message), to); });
  }
  void copy_from_payload(const Message& message, const float* from) override {
    if (!crosses_boundary(message)) return RankDevice::copy_from_payload(message, from);
    time_work([&] { chunk_for(message).unpack(is_values(message), from); });
  }

  /// Elements of gradients and parameters are numbered anew in each chunk.
  CollectiveBinding bind_collective(const Collective& collective) override {
    PipelineStageChunk& chunk = chunk_with(collective.layer);
    const bool within_pass =
        collective.buffer.array == Array::activations || collective.buffer.array == Array::errors;
    const bool of_tokens =
        within_pass && chunk.network().kernel(collective.layer).token_transfer() != nullptr;
    if (within_pass && !of_tokens && collective.kind == Collective::Kind::all_to_all)
      return bind_rows_of_experts(chunk, collective);
    if (within_pass) return bind_activation_sum(chunk, collective);
    if (is_token_sum(collective)) return bind_token_sum();
    if (!collective.parts.empty()) return bind_parts(chunk, collective.parts);
    if (scatters_each_ && collective.kind == Collective::Kind::reduce_scatter)
      return bind_micro_batch_scatter(chunk, chunk.map().stored(collective.buffer.elements));
    return bind_array(chunk.part(collective.buffer), chunk.mirror());
  }

 protected:
  std::span<float> array(Array array) override { return array_of(chunks_.front().network(), array); }
  Slice stored(const Slice& of_model) const override { return chunks_.front().map().stored(of_model); }

 private:
  static bool is_values(const Message& message) { return message.buffer.array == Array::activations; }
  static bool crosses_boundary(const Message& message) {
    return is_values(message) || message.buffer.array == Array::errors;
  }
  PipelineStageChunk& chunk_with(int layer) {
    if (layer < 0) return chunks_.front();  // gradients of a stage that is the whole network
    return *std::ranges::find_if(chunks_, [layer](const PipelineStageChunk& one) { return one.has(layer); });
  }
  PipelineStageChunk& chunk_for(const Message& message) { return chunks_.at(chunk_of_tag(message.tag)); }

  /// True if the pass that has begun belongs to a backward pass, whose activations are recomputed first.
  bool is_before_backward() const {
    if (schedule_.empty()) return false;
    std::size_t through = 0;
    for (const PipelineStageChunk& chunk : chunks_) through += chunk.finished_passes();
    return through < schedule_.size() && schedule_[through].pass == Work::backward;
  }

  /// Binds a sum of outputs or error signals of a tensor-parallel layer, or an exchange of its tokens.
  CollectiveBinding bind_activation_sum(const PipelineStageChunk& chunk, const Collective& collective) {
    const bool values = collective.buffer.array == Array::activations;
    Network& network = values ? chunk.exchanging(collective.layer, is_before_backward()) : chunk.current();
    LayerKernel& kernel = network.kernel(collective.layer);
    const Pass pass = values ? Pass::forward : Pass::backward_data;
    TokenTransfer* const tokens = kernel.token_transfer();
    return tokens != nullptr ? bind_tokens(*tokens, pass) : bind_layer_sum(kernel, pass, collective);
  }

  CollectiveBinding bind_tokens(TokenTransfer& tokens, Pass pass) {
    std::span<float> buffer;
    time_work([&] { buffer = tokens.pack(pass); });
    CollectiveBinding work = bind_backend_memory(buffer);
    work.on_waited = [this, &tokens, pass] { time_work([&] { tokens.unpack(pass); }); };
    return work;
  }

  /// The sum of the gradients of layers whose tokens ranks divide is the only one that names no elements.
  bool is_token_sum(const Collective& collective) const {
    return token_sums_ && collective.kind == Collective::Kind::all_reduce &&
           collective.buffer.array == Array::gradients && collective.buffer.elements.size() == 0;
  }

  /// The progress thread packs, because sums of the same gradients over replicas may come before.
  CollectiveBinding bind_token_sum() {
    CollectiveBinding work{.memory = token_sums_->buffer()};
    work.before_phase = [this](std::size_t phase) {
      if (phase == 0) token_sums_->pack();
    };
    work.after_phase = [this](std::size_t) { token_sums_->unpack(); };  // the last one leaves the sums
    return work;
  }

  /// Binds the all-to-all before or after a pass of a layer of experts, in turn. Before it, the pass of the
  /// micro-batch may not have begun.
  CollectiveBinding bind_rows_of_experts(const PipelineStageChunk& chunk, const Collective& collective) {
    const bool values = collective.buffer.array == Array::activations;
    const Network* const begun = std::exchange(at_experts_, nullptr);
    Network& network = begun != nullptr                  ? chunk.current()
                       : values && !is_before_backward() ? chunk.forward_network()
                                                         : chunk.backward_network();
    if (begun == nullptr) at_experts_ = &network;
    return bind_expert_rows(network.kernel(collective.layer), values ? Pass::forward : Pass::backward_data);
  }

  /// Binds a copy of gradients between which others lie, and copies the sums back.
  CollectiveBinding bind_parts(const PipelineStageChunk& chunk, const std::vector<Slice>& parts) {
    std::vector<Slice> stored;
    std::int64_t size = 0;
    for (const Slice& part : parts) {
      stored.push_back(chunk.map().stored(part));
      size += stored.back().size();
    }
    const std::shared_ptr<float> copy = acquire_copy(chunk.network().backend(), size);
    CollectiveBinding work = bind_backend_memory({copy.get(), static_cast<std::size_t>(size)});
    move_parts(chunk, stored, [at = copy.get()](float* sums, const Slice& one, std::int64_t begin) {
      return std::pair{sums + one.begin, at + begin};
    });
    work.on_waited = [this, &chunk, stored, copy, size] {
      move_parts(chunk, stored, [at = copy.get()](float* sums, const Slice& one, std::int64_t begin) {
        return std::pair{at + begin, sums + one.begin};
      });
      free_copies_.emplace(size, copy);
    };
    return work;
  }

  /// Moves slices of the gradients. @param ends  source and target of a slice, which begins at `begin` of a
  /// copy of all slices
  template <class Ends>
  void move_parts(const PipelineStageChunk& chunk, const std::vector<Slice>& parts, const Ends& ends) {
    Backend& backend = chunk.network().backend();
    time_work([&] {
      std::int64_t begin = 0;
      for (const Slice& one : parts) {
        const auto [from, to] = ends(chunk.network().all_parameters().gradient, one, begin);
        backend.move({.size = {one.size()}, .from_stride = {1}, .to_stride = {1}}, from, to);
        begin += one.size();
      }
    });
  }

  /// Binds a copy of the gradients that were accumulated since the last reduce-scatter, because the next
  /// micro-batch accumulates meanwhile. The owned share is added to the gradients when the program has waited
  /// for the collective.
  CollectiveBinding bind_micro_batch_scatter(const PipelineStageChunk& chunk, const Slice& slice) {
    Backend& backend = chunk.network().backend();
    float* const sums = chunk.network().all_parameters().gradient;
    const std::shared_ptr<float> copy = acquire_copy(backend, slice.size());
    time_work([&] {
      backend.move({.size = {slice.size()}, .from_stride = {1}, .to_stride = {1}}, sums + slice.begin,
                   copy.get());
      backend.clear(sums + slice.begin, slice.size());
    });
    CollectiveBinding work = bind_backend_memory({copy.get(), static_cast<std::size_t>(slice.size())});
    work.on_waited = [this, &chunk, &backend, sums, slice, copy] {
      time_work([&] {
        for (const Slice& owned : chunk.owned()) {
          const std::int64_t first = std::max(owned.begin, slice.begin),
                             last = std::min(owned.end, slice.end);
          if (first < last) backend.add(copy.get() + first - slice.begin, sums + first, last - first);
        }
      });
      free_copies_.emplace(slice.size(), copy);
    };
    return work;
  }

  /// Memory of the backend; that of finished reduce-scatters is used again.
  std::shared_ptr<float> acquire_copy(Backend& backend, std::int64_t elements) {
    const auto found = free_copies_.find(elements);
    if (found == free_copies_.end()) return backend.allocate(elements);
    std::shared_ptr<float> memory = std::move(found->second);
    free_copies_.erase(found);
    return memory;
  }

  bool scatters_each_;
  DeviceLearning learning_;
  std::vector<PipelineAction> schedule_;  ///< passes of a step in order; empty: no recomputation
  std::deque<HostMirror> more_mirrors_;   ///< of all chunks but the first, whose mirror is mirror_
  std::deque<PipelineStageChunk> chunks_;
  PipelineStageChunk* last_ = nullptr;
  std::optional<TokenSums> token_sums_;  ///< if ranks that share layers divide the tokens between them
  const Network* at_experts_ =
      nullptr;  ///< whose rows of experts were exchanged before a pass, not yet after
  std::multimap<std::int64_t, std::shared_ptr<float>> free_copies_;  ///< by their number of elements
};

}  // namespace

std::unique_ptr<RankDevice> pipeline_stage_device(const PipelineStageNetworks& networks,
                                                  const ModelPartition& partition, int stage,
                                                  std::vector<std::vector<Slice>> owned,
                                                  DeviceLearning learning) {
  return std::make_unique<PipelineStageDevice>(networks, partition, stage, std::move(owned),
                                               std::move(learning));
}

}  // namespace stepcast
