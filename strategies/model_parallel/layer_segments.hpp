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

/// One pass of a worker through shared layers.
struct PassRun {
  Work pass{};
  Seconds exchange_overhead;  ///< device time of every exchange, such as launches
  bool sums = false;          ///< gradients are complete: their sums start during the rest of the pass
  bool synchronizes = false;  ///< the host waits for the device after every exchange
  bool waits = false;         ///< for each sum of gradients, before the rest of the pass
};

/// Runs the steps of a pass: each an exchange, the work during it, and the work after it. Records "compute"
/// and the times of the exchanges.
/// @param sums  sums of gradients that were started are appended
SubProgram run_pass(Worker& worker, const PassSegments& passes, const PassRun& run,
                    std::vector<Pending>& sums);

/// Runs two passes at the same time: the exchanges of each run during the work of the other (DualPipe).
/// Exchanges are not recorded. @param sums  as in run_pass, of the second pass
SubProgram run_together(Worker& worker, const PassSegments& forward, const PassSegments& backward,
                        const PassRun& run, std::vector<Pending>& sums);

}  // namespace stepcast
