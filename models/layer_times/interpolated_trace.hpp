#pragma once

#include <cstdint>
#include <vector>

#include "models/layer_times/trace.hpp"

namespace stepcast {

/// The traces that the layer times of a batch size come from.
struct BatchNeighbors {
  const Trace* lower = nullptr;
  const Trace* upper = nullptr;  ///< = lower if that batch was captured, or lies outside the captured ones
  double upper_share = 0;        ///< weight of `upper` in the straight line between both

  bool between() const { return lower != upper; }
};

/// The trace of `batch`, or the traces of the next smaller and the next larger batch; outside the captured
/// batches the trace of the nearest one. @throws std::invalid_argument if there is no trace
BatchNeighbors batch_neighbors(const std::vector<const Trace*>& traces, std::int64_t batch);

/// A trace of `batch` between two captured ones: the median of every pass lies on the straight line between
/// the medians of both, the samples are those of the larger batch scaled to that median, and the flags are
/// those of both. Without step times. If `batch` was captured or lies outside: the unchanged neighbor.
Trace interpolated_trace(const BatchNeighbors& neighbors, std::int64_t batch);

}  // namespace stepcast
