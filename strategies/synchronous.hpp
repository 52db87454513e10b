#pragma once

#include <optional>

#include "core/units.hpp"
#include "core/yaml.hpp"
#include "strategies/worker.hpp"

namespace stepcast {

/// Synchronous data-parallel SGD: every worker computes the gradient of its share of the mini-batch, all sum
/// them, all take the same step.
struct Synchronous {
  int steps = 1;
  int micro_batches = 1;                 ///< gradients are summed locally over so many before they travel
  bool overlap = true;                   ///< all-reduce beside the rest of the backward pass
  bool synchronized_batch_norm = false;  ///< batch statistics over all workers, forward and backward
  bool recompute = false;        ///< activations are computed again in the backward pass (Chen et al. 2016)
  int prefetch = 1;              ///< micro-batches loaded ahead; 0: the load is waited for
  Seconds host_synchronization;  ///< host waits for the device before every collective; 0: stream-ordered
  Seconds step_overhead;         ///< work of a step outside the layers, such as input
};

/// Source: P. Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour", arXiv:1706.02677;
/// stream-ordered against host-synchronized: N. Dryden et al., "Aluminum", MLHPC 2018.
Program synchronous(Worker& worker, const Synchronous& options);

}  // namespace stepcast
