#pragma once

#include "strategies/pieces.hpp"
#include "strategies/strategy.hpp"
#include "strategies/training_options.hpp"
#include "strategies/worker.hpp"

namespace stepcast {

/// Synchronous SGD by groups of devices that share every sample, or every layer: spatial, filter and tensor
/// parallelism, experts, and models cut over machines. They differ in the collectives around the layers.
struct Sharded {
  int steps = 1;
  int micro_batches = 1;
  int prefetch = 1;
  Seconds step_overhead;
  Seconds exchange_overhead;  ///< of the device for every exchange in a pass: launches, packing and unpacking
  Passes passes;
  /// Of the stretches between checkpoints, first to last, each computed again before its backward pass; none:
  /// activations are kept.
  std::vector<Passes> recomputed;
  std::vector<int> sums;  ///< of gradients after the backward pass, where they do not go on beside it
};

/// Source: N. Dryden, N. Maruyama, T. Benson, T. Moon, M. Snir, B. Van Essen, "Improving strong-scaling of
/// CNN training by exploiting finer-grained parallelism", IPDPS 2019 (halos, groups of samples); the other
/// forms are named in models/shard.hpp.
Program sharded(Worker& worker, const Sharded& options);

}  // namespace stepcast
