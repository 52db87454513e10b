#pragma once

#include <string>
#include <vector>

#include "models/cost.hpp"
#include "models/cut_times.hpp"
#include "models/trace.hpp"
#include "strategies/workload.hpp"

namespace stepcast {

/// A collective of the plan in a pass, and what it is booked under.
struct Call {
  int collective = -1;  ///< -1: none
  const char* what = "";
  Seconds packing = {};  ///< of the device: what is sent into one buffer; and as long for what was received
};

/// Collectives around the passes of one layer, in order. A pass waits for each; halos travel beside the part
/// of the layer that does not need them. Backward is backward-data.
struct LayerCalls {
  std::vector<Call> before_forward, after_forward, before_backward, after_backward;
  Call forward_halo, backward_halo;
  double forward_border = 0;   ///< share of the outputs that read rows of a neighbour
  double backward_border = 0;  ///< share of the input's error signal that does
  int sides = 0;               ///< of the part that border on neighbours: kernels of the border
};

/// Part of a pass: an exchange, the work that goes on beside it, and the work after it, in pieces of layers.
struct Stretch {
  Call call;
  LayerRange beside, then;
  std::vector<int> sums;  ///< collectives to start when this is done: gradients that are complete
};

/// How a training step runs through shared layers. Every layer is three pieces in the workload, cut so that
/// what runs without waiting is one range of pieces.
struct Passes {
  std::vector<Stretch> forward, backward;

  const std::vector<Stretch>& of(Work pass) const { return pass == Work::forward ? forward : backward; }
};

constexpr int kPieces = 3;  ///< of a layer

/// Times of the pieces. Work splits by the border's share; the launches of the border's kernels come on top.
/// @param costs    of the part's layers
/// @param overlap  halos travel beside the interior; else there is no border apart
Workload pieces_workload(const Trace& times, const std::vector<LayerCost>& costs, const Device& device,
                         const std::vector<LayerCalls>& calls, bool overlap);

/// Multiplies all times.
void scale(Workload& workload, double factor);

/// @param layers   of the model, that this worker has
/// @param sums     by layer: collectives of gradients that are complete when the backward pass has left it
/// @param overlap  halos beside the interior, sums of error signals beside backward-weights
Passes make_passes(const std::vector<LayerCalls>& calls, LayerRange layers,
                   const std::vector<std::vector<int>>& sums, bool overlap);

/// Every piece of the layers.
LayerRange pieces_of(LayerRange layers);

}  // namespace stepcast
