#pragma once

#include <span>
#include <vector>

#include "validate/array_map.hpp"
#include "validate/crossing.hpp"
#include "validate/mirror.hpp"
#include "validate/stage_device.hpp"

namespace stepcast {

/// A run of layers of a stage: its networks, and how far micro-batches are through it.
class StageChunk {
 public:
  /// @param owned   stored parameters that it updates; empty: all
  /// @param mirror  of its parameters; null: the host can touch them
  StageChunk(const ChunkNetworks& networks, const LayerRange& layers, std::int64_t micro_batch,
             std::vector<Slice> owned, Mirror* mirror);

  bool has(int layer) const { return layer >= layers_.first && layer < layers_.last; }
  Network& network() const { return networks_.first(); }
  Mirror* mirror() const { return mirror_; }
  const ArrayMap& map() const { return map_; }
  /// Of parameters or gradients, as the host may touch them.
  std::span<float> part(const Buffer& buffer) const;
  const std::vector<Slice>& owned() const { return owned_; }

  void begin();
  void compute(Work pass, LayerRange pieces);
  /// The forward pass of the micro-batch whose backward pass is next.
  void compute_again(LayerRange pieces);
  void update();
  /// Of the micro-batch that it computed last.
  Network& current() const { return *current_; }
  /// Turns of this step that are through, forward and backward.
  std::size_t turns() const { return forward_ + backward_; }

  std::span<float> outgoing_values();
  std::span<float> outgoing_errors();
  /// The same where the host cannot touch what crosses.
  std::size_t crossing_floats(bool values) const;
  void pack(bool values, float* to);
  void unpack(bool values, const float* from);

  std::span<float> incoming_values() { return held_.at(forward_).values; }
  std::span<float> incoming_errors() { return held_.at(backward_).errors; }
  void values_arrived();
  void errors_arrived();

 private:
  /// What came in for one micro-batch.
  struct Held {
    std::vector<float> values, errors;
  };

  /// Of a layer of this chunk; others only pass through it.
  bool is_own(const Crossing::Place& place) const { return place.source >= layers_.first; }

  const ChunkNetworks& networks_;
  Mirror* mirror_;
  LayerRange layers_;
  ArrayMap map_;
  std::vector<Slice> owned_;
  Crossing before_, after_;
  DeviceCrossing on_device_;
  std::vector<Held> held_;
  std::vector<float> sent_values_, sent_errors_;
  std::size_t forward_ = 0, backward_ = 0;  ///< turns of this step that are through
  Network* current_ = nullptr;
};

}  // namespace stepcast
