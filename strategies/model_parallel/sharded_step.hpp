#pragma once

#include "strategies/model_parallel/layer_segments.hpp"
#include "strategies/options/training_options.hpp"
#include "strategies/plan/setting.hpp"
#include "strategies/program/program.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Input of a worker's program where groups of devices share every sample or every layer: spatial, filter and
/// tensor parallelism, experts, and networks partitioned over machines.
struct Sharded {
  int steps = 1;
  int micro_batches = 1;
  int prefetch = 1;
  Seconds step_overhead;
  Seconds exchange_overhead;  ///< device time of every exchange in a pass, such as launches
  PassSegments passes;
  /// Passes of the runs of layers between checkpoints, first to last. Each is computed again before its
  /// backward pass. Empty: activations are kept.
  std::vector<PassSegments> recomputed;
  std::vector<int> sums;  ///< sums of gradients that start after the backward pass, not beside it
};

/// Synchronous SGD by groups of devices. The strategies differ in the collectives around the layers. In every
/// step:
///
///   1. forward pass, backward pass: each device computes its part of every layer; exchanges of activations
///   and
///      error signals in the group stand before and after the layers
///   2. all-reduce of each bucket of gradients over the replicas (parameters that a group shares: over all
///      devices), beside the rest of the backward pass
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
  bool sums = false;          ///< gradients are complete: their sums start beside the rest of the pass
};

/// Runs the steps of a pass: each an exchange, the work beside it, and the work after it. Records "compute"
/// and the times of the exchanges.
/// @param sums  sums of gradients that were started are appended
SubProgram run_pass(Worker& worker, const PassSegments& passes, const PassRun& run,
                    std::vector<Pending>& sums);

}  // namespace stepcast
