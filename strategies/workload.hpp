#pragma once

#include <string>
#include <vector>

#include "core/units.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// What a device does with a range of layers.
enum class Work { forward, backward, update };

/// Layers [first, last) of the model.
struct LayerRange {
  int first = 0;
  int last = 0;

  bool empty() const { return first >= last; }
};

/// Seconds of each pass of a layer for one micro-batch (update: once a step).
struct LayerSeconds {
  double forward = 0, backward = 0, update = 0;
};

/// Gradients that travel in one all-reduce, filled from the last layer on. When the backward pass has gone
/// through `layers` they are complete.
struct Bucket {
  LayerRange layers;
  Slice elements;  ///< of the gradient array, layers and arrays in the model's order
  Bytes gradient;  ///< on the wire
  int sum = -1;    ///< collective of the plan; -1: none
};

/// What one worker does in a step, worked out from model, traces and options before anything runs. Plain
/// data.
struct Workload {
  std::vector<std::string> layer_names;
  std::vector<LayerSeconds> median;  ///< one entry a layer
  std::vector<std::vector<LayerSeconds>>
      samples;                    ///< measured steps: [sample][layer]; empty: no jitter to draw from
  int sample_ranks = 1;           ///< that were measured at once: samples of the first, then of the next
  std::vector<Bucket> buckets;    ///< in the order in which the backward pass completes them
  std::vector<Bytes> statistics;  ///< of each layer's batch norm over the micro-batch; 0: none
  Bytes input;                    ///< of one micro-batch, read from storage

  int layers() const { return static_cast<int>(median.size()); }
};

}  // namespace stepcast
