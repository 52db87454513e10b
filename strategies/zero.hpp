#pragma once

#include "strategies/strategy.hpp"
#include "strategies/training_options.hpp"
#include "strategies/worker.hpp"

namespace stepcast {

/// Synchronous data-parallel SGD with sharded state: each worker updates its share of the parameters only.
struct Zero {
  int steps = 1;
  int micro_batches = 1;
  int stage = 1;  ///< 1: optimizer state sharded, 2: gradients too, 3: parameters too
  bool overlap = true;
  int prefetch = 1;
  Seconds step_overhead;
  std::vector<int> scatters;  ///< of each bucket: reduce-scatter of its gradients; -1: none
  std::vector<int> gathers;   ///< of each bucket: all-gather of its parameters
};

/// Stages 1 and 2: gradients are reduce-scattered bucket by bucket, updated parameters gathered after the
/// update: as many bytes as an all-reduce. Stage 2 scatters after every micro-batch, as the whole gradient is
/// kept nowhere. Stage 3 gathers parameters before each use, forward and backward, one bucket ahead: 1.5
/// times the bytes. Source: S. Rajbhandari, J. Rasley, O. Ruwase, Y. He, "ZeRO: memory optimizations toward
/// training trillion parameter models", SC 2020, sections 5 and 7.
Program zero(Worker& worker, const Zero& options);

/// What an update takes if each of `ways` workers does its share of it; its launches stay.
/// @param seconds  of the whole update; @param launches  of all its kernels
double shared_update(double seconds, double launches, int ways);

/// `strategy: {kind: zero, stage: 1 | 2 | 3}`
Plan read_zero(const YamlValue& value, const Setting& setting);

}  // namespace stepcast
