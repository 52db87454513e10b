#pragma once

#include "core/units.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/options/communication_options.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Options of synchronous data-parallel SGD.
struct Synchronous {
  int steps = 1;
  int micro_batches = 1;                 ///< M; their gradients are summed locally before the all-reduce
  bool overlap = true;                   ///< all-reduce beside the rest of the backward pass
  bool synchronized_batch_norm = false;  ///< batch statistics over all workers, forward and backward
  bool recompute = false;        ///< activations are computed again in the backward pass (Chen et al. 2016)
  int prefetch = 1;              ///< micro-batches loaded ahead; 0: the worker waits for each load
  Seconds host_synchronization;  ///< host waits for the device before every collective; 0: stream-ordered
  Seconds host_work;             ///< host work of a step; the workers of a server take turns at it
  Seconds step_overhead;         ///< time of a step outside the layers, such as input work
  GradientCompression compression;
};

/// The options with what the plan adds to them.
struct SynchronousRun {
  Synchronous options;
  std::vector<LocalWork> quantize;       ///< work on each bucket; empty: no compression
  LocalWork restore;                     ///< work on all buckets
  std::vector<CollectiveId> statistics;  ///< of each layer with batch norm
  CollectiveId host;                     ///< the end of the hosts' work on a step; none: no such work
};

/// Synchronous data-parallel SGD. In every step, each of N workers with the same parameters w does:
///
///   1. g = sum of the gradients at w of its M micro-batches, bucket by bucket from the last layer on
///   2. G = sum of g over all workers: an all-reduce of each bucket, beside the rest of the backward pass
///   3. w = w - learning rate x G / (N M), the same step on every worker
///
/// Source: P. Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour", arXiv:1706.02677;
/// stream-ordered and host-synchronized collectives: N. Dryden et al., "Aluminum", MLHPC 2018.
Program synchronous(Worker& worker, const SynchronousRun& run);

/// A plan with one role of all workers. The workload has buckets and, for synchronized batch norm,
/// statistics.
/// @param endpoints  of each worker
Plan synchronous_plan(const Platform& platform, std::vector<int> endpoints, Workload workload,
                      Synchronous options, const CommunicationOptions& communication);

Strategy synchronous_strategy();

}  // namespace stepcast
