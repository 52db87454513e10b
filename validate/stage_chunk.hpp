#pragma once

#include <span>
#include <vector>

#include "validate/array_map.hpp"
#include "validate/stage_device.hpp"

namespace stepcast {

/// What crosses one end of a run of layers, one source after the other.
struct Crossing {
  struct Place {
    int source = 0;
    std::size_t begin = 0, size = 0;  ///< in the message [floats]
  };
  std::vector<Place> places;
  std::size_t size = 0;
};

/// A run of layers of a stage: its networks, and how far micro-batches are through it.
class StageChunk {
 public:
  /// @param owned  stored parameters that it updates; empty: all
  StageChunk(const ChunkNetworks& networks, const LayerRange& layers, std::int64_t micro_batch,
             std::vector<Slice> owned);

  bool has(int layer) const { return layer >= layers_.first && layer < layers_.last; }
  Network& network() const { return networks_.first(); }
  const ArrayMap& map() const { return map_; }
  const std::vector<Slice>& owned() const { return owned_; }

  void begin();
  void compute(Work pass, LayerRange pieces);
  /// The forward pass of the micro-batch whose backward pass is next.
  void compute_again(LayerRange pieces);
  void update();
  /// Turns of this step that are through, forward and backward.
  std::size_t turns() const { return forward_ + backward_; }

  std::span<float> outgoing_values();
  std::span<float> outgoing_errors();
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
  LayerRange layers_;
  ArrayMap map_;
  std::vector<Slice> owned_;
  Crossing before_, after_;
  std::vector<Held> held_;
  std::vector<float> sent_values_, sent_errors_;
  std::size_t forward_ = 0, backward_ = 0;  ///< turns of this step that are through
};

}  // namespace stepcast
