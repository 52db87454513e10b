#pragma once

#include <memory>
#include <span>
#include <vector>

#include "kernels/network/network.hpp"
#include "models/partition/tensor_shard.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/memory/parameters.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The tensors that a message between two pipeline stages holds, one after the other.
struct StageBoundary {
  /// The output of layer `source` (-1: the model's input), or the error signal of that output.
  struct Entry {
    int source = 0;
    std::size_t begin = 0, size = 0;  ///< position in the message [floats]
  };
  std::vector<Entry> entries;
  std::size_t size = 0;  ///< of the message [floats]

  const Entry& entry_of(int source) const;
};

/// The boundary before `layer`, for a batch of `batch` samples.
StageBoundary boundary_before(const Model& model, int layer, std::int64_t batch);

/// Packs and unpacks the boundary messages of a chunk on a device whose memory the host cannot access. All
/// copies are enqueued on the device. What a micro-batch received is kept, because some tensors only pass
/// through the chunk.
class DeviceStageBoundary {
 public:
  /// @param first   first layer of the chunk
  /// @param before  boundary before the chunk
  /// @param after   boundary after the chunk
  DeviceStageBoundary(int first, StageBoundary before, StageBoundary after, std::size_t micro_batches)
      : first_(first), before_(std::move(before)), after_(std::move(after)), received_(micro_batches) {}

  /// Floats of a message of values to the next chunk, and of one of error signals to the previous chunk.
  std::size_t values_size() const { return after_.size; }
  std::size_t errors_size() const { return before_.size; }

  /// @param network  of this micro-batch
  void pack_values(Network& network, std::size_t micro_batch, float* to);
  void pack_errors(Network& network, std::size_t micro_batch, float* to);
  void unpack_values(Network& network, std::size_t micro_batch, const float* from);
  void unpack_errors(Network& network, std::size_t micro_batch, const float* from);

 private:
  struct Received {
    std::shared_ptr<float> values, errors;
  };

  /// True for the output of a layer of this chunk; other tensors only pass through it.
  bool is_own(const StageBoundary::Entry& entry) const { return entry.source >= first_; }
  /// Copies a received message into `memory`, which is allocated if it is null. Returns the copy.
  static float* store_received(Network& network, std::shared_ptr<float>& memory, const float* from,
                               std::size_t size);

  int first_;
  StageBoundary before_, after_;
  std::vector<Received> received_;  ///< per micro-batch
  std::shared_ptr<float> scratch_;  ///< for one error signal
};

/// The networks of a chunk (a range of layers): one for each micro-batch of a step, all with the same
/// parameters.
struct ChunkNetworks {
  std::vector<std::unique_ptr<Network>> of_micro_batch;

  Network& first() const { return *of_micro_batch.front(); }
};

/// The networks of one pipeline stage: one chunk, or several in an interleaved schedule.
struct PipelineStageNetworks {
  std::unique_ptr<SharedPart> part;  ///< what the rank has of layers that ranks share; null: all
  std::vector<ChunkNetworks> chunks;
};

/// The stage of a rank, and its position among the ranks of that stage that share its layers and tokens, or
/// its experts.
struct StagePosition {
  int stage = 0, stages = 1, place = 0;
};

/// Ranks of a stage that work on the same samples; consecutive ranks share the layers.
int ranks_of_samples(const ModelPartition& partition);

/// The position of a member of a stage among the ranks that share its layers and tokens, or its experts.
int place_in_stage(const ModelPartition& partition, int member);

/// @param at       the stage takes every `stages`-th chunk of the model, from number `stage` on
/// @param options  batch: of a micro-batch; data_seed: of the first micro-batch, incremented for the others
PipelineStageNetworks pipeline_stage_networks(Backend& backend, const Model& model,
                                              const ModelPartition& partition, const StagePosition& at,
                                              NetworkOptions options);

/// For each chunk, the stored parameters whose gradients `rank` owns after the plan's reduce-scatters.
std::vector<std::vector<Slice>> owned_slices(const Plan& plan, RankId rank,
                                             const PipelineStageNetworks& networks, int stage);

/// Layers of chunk number `chunk` of the `chunks` chunks of a stage.
LayerRange layers_of_chunk(const ModelPartition& partition, std::size_t chunk, std::size_t chunks, int stage);

/// One chunk (range of layers) of a pipeline stage: its networks, and how many micro-batches have passed
/// through it.
class PipelineStageChunk {
 public:
  /// @param owned   stored parameters that this rank updates; empty: all
  /// @param mirror  of the chunk's parameters; null: the host can access them
  PipelineStageChunk(const ChunkNetworks& networks, const LayerRange& layers, std::int64_t micro_batch,
                     std::vector<Slice> owned, HostMirror* mirror);

  bool has(int layer) const { return layer >= layers_.first && layer < layers_.last; }
  Network& network() const { return networks_.first(); }
  HostMirror* mirror() const { return mirror_; }
  const ParameterLayout& map() const { return map_; }
  /// A part of the parameters or gradients, in memory that the host can access.
  std::span<float> part(const Buffer& buffer) const;
  const std::vector<Slice>& owned() const { return owned_; }

  void begin();
  /// Runs segments of the next micro-batch's pass.
  void compute(Work pass, LayerRange segments);
  /// Repeats the forward pass of the micro-batch whose backward pass comes next (activation recomputation).
  void recompute(LayerRange segments);
  void update();
  /// Network of the micro-batch whose forward or backward pass is the next, or has begun.
  Network& forward_network() const { return *networks_.of_micro_batch.at(forward_); }
  Network& backward_network() const { return *networks_.of_micro_batch.at(backward_); }
  /// Network of the micro-batch that was computed last.
  Network& current() const { return *current_; }
  /// Network of the micro-batch for which a layer exchanges activations: that of the next pass if the
  /// exchange is before its first layer. @param recomputes  whether the next pass is a recomputation
  Network& exchanging(int layer, bool recomputes) const;
  /// Forward and backward passes of micro-batches that are finished in this step.
  std::size_t finished_passes() const { return forward_ + backward_; }

  /// The messages to the next and to the previous chunk after the last forward or backward pass.
  std::span<float> outgoing_values();
  std::span<float> outgoing_errors();
  /// Sizes and copies of these messages for device memory that the host cannot access. @param values  false:
  /// error signals
  std::size_t boundary_floats(bool values) const;
  void pack(bool values, float* to);
  void unpack(bool values, const float* from);

  /// The memory of the messages that the next forward or backward pass needs.
  std::span<float> incoming_values() { return received_.at(forward_).values; }
  std::span<float> incoming_errors() { return received_.at(backward_).errors; }
  void on_values_received();
  void on_errors_received();

 private:
  /// Messages that one micro-batch received.
  struct Received {
    std::vector<float> values, errors;
  };

  /// True for the output of a layer of this chunk; other tensors only pass through it.
  bool is_own(const StageBoundary::Entry& entry) const { return entry.source >= layers_.first; }

  const ChunkNetworks& networks_;
  HostMirror* mirror_;
  LayerRange layers_;
  ParameterLayout map_;
  std::vector<Slice> owned_;
  StageBoundary before_, after_;
  DeviceStageBoundary on_device_;
  std::vector<Received> received_;  ///< per micro-batch
  std::vector<float> sent_values_, sent_errors_;
  std::size_t forward_ = 0, backward_ = 0;  ///< micro-batches of this step that have passed
  Network* current_ = nullptr;
  bool between_passes_ = true;
};

/// Device of a pipeline stage: it runs the kernels of one stage. Micro-batches pass through each chunk in
/// order, forward and backward, so the n-th forward pass of a chunk in a step, and what it receives and
/// sends, belong to micro-batch n.
/// @param stage  index of the stage
/// @param owned  for each chunk, the stored parameters that it updates; empty: all
std::unique_ptr<RankDevice> pipeline_stage_device(const PipelineStageNetworks& networks,
                                                  const ModelPartition& partition, int stage,
                                                  std::vector<std::vector<Slice>> owned = {},
                                                  DeviceLearning learning = {});

}  // namespace stepcast
