#pragma once

#include "core/typed_numbers.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Options of synchronous data-parallel SGD with partitioned state.
struct Zero {
  int steps = 1;
  int micro_batches = 1;
  BucketSize bucket;  ///< of one reduce-scatter
  int stage = 1;      ///< 1: optimizer state is partitioned, 2: gradients too, 3: parameters too
  bool overlap = true;
  bool recompute = false;  ///< activations are computed again in the backward pass (Chen et al. 2016)
  int prefetch = 1;
  bool reads_gradients = false;  ///< before the update, as loss scaling does: the host waits for them
  Seconds step_overhead;
};

/// The options with what the plan adds to them.
struct ZeroRun {
  Zero options;
  std::vector<CollectiveId> scatters;  ///< reduce-scatter of each bucket's gradients, if there is one
  std::vector<CollectiveId> gathers;   ///< all-gather of each bucket's parameters, if there is one
  std::vector<Seconds> arrays;  ///< time to read or write the gradients of each bucket that a worker keeps
};

/// ZeRO: each of N workers keeps and updates an N-th of the state. In every step:
///
///   1. forward and backward pass; stage 3 gathers the parameters of each bucket before each use, one bucket
///      ahead of the pass. With `recompute`, each bucket's forward pass runs again before its backward pass,
///      with the parameters that the backward pass gathers
///   2. reduce-scatter of each bucket's gradients during the backward pass: worker i receives the sum of its
///      share. Stage 1 scatters after the last micro-batch; stages 2 and 3 after every micro-batch, because
///      no worker keeps the whole gradient
///   3. worker i updates its share of the parameters
///   4. stages 1 and 2: all-gather of the updated parameters
///
/// Stages 1 and 2 send as many bytes as an all-reduce, stage 3 sends 1.5 times as many.
///
/// Source: S. Rajbhandari, J. Rasley, O. Ruwase, Y. He, "ZeRO: memory optimizations toward training trillion
/// parameter models", SC 2020, sections 5 and 7.
Program zero(Worker& worker, const ZeroRun& run);

/// Time of an update that `ways` workers share. The time to launch its kernels is not divided.
/// @param seconds   of the whole update
/// @param launches  seconds of the launches of all its kernels
double shared_update(double seconds, double launches, int ways);

Strategy zero_strategy();

}  // namespace stepcast
