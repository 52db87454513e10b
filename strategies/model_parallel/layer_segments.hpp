#pragma once

#include <string>
#include <vector>

#include "models/cost/cost.hpp"
#include "models/layer_times/trace.hpp"
#include "models/partition/partition_times.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/setting.hpp"
#include "strategies/program/program.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// A collective of the plan in a pass, and the name under which its time is recorded.
struct Call {
  CollectiveId collective = {};  ///< none: nothing is sent
  const char* what = "";         ///< name of the record, such as "halo"
  Seconds packing = {};          ///< device time to pack what is sent, and again to unpack what was received
};

/// Collectives around the passes of one layer, in order. A pass waits for each of them. Halos are exchanged
/// while the part of the layer that does not need them is computed. "Backward" means backward-data.
struct LayerCalls {
  std::vector<Call> before_forward, after_forward, before_backward, after_backward;
  std::vector<Call> during_backward;  ///< run during backward-data, of a layer with calls after it
  Call forward_halo, backward_halo;
  double forward_border = 0;   ///< share of the outputs that read a neighbour's rows
  double backward_border = 0;  ///< share of the input's error signal that reads them
  int sides = 0;               ///< sides that border on neighbours: number of the border's kernels
};

/// A step of a pass: an exchange, the work that runs at the same time, and the work after it. Ranges count
/// layer segments.
struct OverlapSegment {
  Call call;
  LayerRange overlapped, after;
  std::vector<CollectiveId> sums;  ///< collectives to start after it, for gradients that are then complete
};

/// The segments in which a training step runs through partitioned layers. The workload has three segments for
/// every layer, so that work that runs without waiting is one range of segments.
struct PassSegments {
  std::vector<OverlapSegment> forward, backward;

  const std::vector<OverlapSegment>& of(Work pass) const {
    return pass == Work::forward ? forward : backward;
  }
};

constexpr int kSegmentsPerLayer = 3;

/// Workload with the times of the segments. The work of a layer is split between border and interior
/// in proportion to the border's share; the launches of the border's kernels come on top.
/// @param costs    of the layers of the device's part
/// @param overlap  true: halos are exchanged during the interior; false: the border is not a separate segment
Workload segmented_workload(const Trace& times, const std::vector<LayerCost>& costs, const Device& device,
                            const std::vector<LayerCalls>& calls, bool overlap);

/// Multiplies all times.
void scale(Workload& workload, double factor);

/// The passes through `layers` with their collectives.
/// @param layers   layers of the model that this worker has
/// @param sums     for each layer: collectives of gradients that are complete after its backward pass
/// @param overlap  halos are exchanged during the interior, error signals are summed during backward-weights
PassSegments make_passes(const std::vector<LayerCalls>& calls, LayerRange layers,
                         const std::vector<std::vector<CollectiveId>>& sums, bool overlap);

/// All segments of the layers.
LayerRange segments_of(LayerRange layers);

/// Input of a worker's program where groups of devices share every sample or every layer: spatial, filter and
/// tensor parallelism, experts, and networks partitioned over machines.
struct Sharded {
  int steps = 1;
  int micro_batches = 1;
  int prefetch = 1;
  bool reads_gradients = false;  ///< before the update, as loss scaling does: the host waits for them
  Seconds step_overhead;
  Seconds exchange_overhead;  ///< device time of every exchange in a pass, such as launches
  PassSegments passes;
  /// Passes of the runs of layers between checkpoints, first to last. Each is computed again before its
  /// backward pass. Empty: activations are kept.
  std::vector<PassSegments> recomputed;
  std::vector<CollectiveId> sums;  ///< sums of gradients that start after the backward pass, not during it
};

/// Synchronous SGD by groups of devices. The strategies differ in the collectives around the layers. In every
/// step:
///
///   1. forward pass, backward pass: each device computes its part of every layer; exchanges of activations
///   and
///      error signals in the group stand before and after the layers
///   2. all-reduce of each bucket of gradients over the replicas (parameters that a group shares: over all
///      devices), during the rest of the backward pass
///   3. each device updates the parameters that it holds
///
/// Source: N. Dryden, N. Maruyama, T. Benson, T. Moon, M. Snir, B. Van Essen, "Improving strong-scaling of
/// CNN training by exploiting finer-grained parallelism", IPDPS 2019 (halos, groups of samples). The
/// sources of the other forms stand in models/partition.
Program sharded(Worker& worker, const Sharded& options);

/// One pass of a worker through shared layers.
struct PassRun {
  Work pass{};
  Seconds exchange_overhead;  ///< device time of every exchange, such as launches
  bool sums = false;          ///< gradients are complete: their sums start during the rest of the pass
  bool synchronizes = false;  ///< the host waits for the device after every exchange
};

/// Runs the steps of a pass: each an exchange, the work during it, and the work after it. Records "compute"
/// and the times of the exchanges.
/// @param sums  sums of gradients that were started are appended
SubProgram run_pass(Worker& worker, const PassSegments& passes, const PassRun& run,
                    std::vector<Pending>& sums);

}  // namespace stepcast
