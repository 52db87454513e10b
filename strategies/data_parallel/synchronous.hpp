#pragma once

#include <optional>
#include <vector>

#include "core/typed_numbers.hpp"
#include "core/yaml.hpp"
#include "platforms/platform.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/plan/setting.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Options of synchronous data-parallel SGD.
struct Synchronous {
  /// What a stack copies before and after it sums a bucket: its gradients into one buffer on the device and
  /// back, or from the device to the host and back.
  enum class BucketCopies { none, device, host };

  int steps = 1;
  int micro_batches = 1;                 ///< M; their gradients are summed locally before the all-reduce
  bool overlap = true;                   ///< all-reduce during the rest of the backward pass
  bool synchronized_batch_norm = false;  ///< batch statistics over all workers, forward and backward
  bool reads_gradients = false;          ///< before the update, as loss scaling does: the host waits for them
  bool fp32_gradients = false;           ///< precision: mixed: gradients have 4 bytes in messages
  bool recompute = false;        ///< activations are computed again in the backward pass (Chen et al. 2016)
  int prefetch = 1;              ///< micro-batches loaded ahead; 0: the worker waits for each load
  Seconds host_synchronization;  ///< host waits for the device before every collective; 0: stream-ordered
  Seconds host_work;             ///< host work of a step; the workers of a server take turns at it
  Seconds
      host_turn;  ///< before a step, while all devices of a server wait: its one process serves each in turn
  Seconds step_overhead;  ///< time of a step outside the layers, such as input work
  BucketCopies bucket_copies = BucketCopies::none;
  BytesPerSecond copy_rate;                  ///< of one copy of a bucket
  std::optional<BytesPerSecond> input_rate;  ///< at which a server's process copies inputs in host_turn
  std::optional<BytesPerSecond> host_swap;   ///< activations wait on the host, to which this is the bandwidth
  GradientCompression compression;
};

/// The options with what the plan adds to them.
struct SynchronousRun {
  Synchronous options;
  std::vector<LocalWork> quantize;       ///< work on each bucket; empty: no compression
  LocalWork restore;                     ///< work on all buckets
  std::vector<LocalWork> pack;           ///< of each bucket, on the device before its sum; empty: none
  LocalWork unpack;                      ///< of all buckets, after the last sum
  std::vector<CollectiveId> statistics;  ///< of each layer with batch norm
};

/// Synchronous data-parallel SGD. In every step, each of N workers with the same parameters w does:
///
///   1. g = sum of the gradients at w of its M micro-batches, bucket by bucket from the last layer on
///   2. G = sum of g over all workers: an all-reduce of each bucket, during the rest of the backward pass
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

/// A thread that checks every `period` for announced gradients. It agrees with the other workers on those
/// that all of them have announced, waits for their data, and sums the gradients of one check together, in
/// buffers of at most `threshold`. Source: Horovod, docs/tensor-fusion.rst; docs/timeline.rst
/// (WAIT_FOR_DATA); BackgroundThreadLoop in horovod/common/operations.cc.
struct FusionCycle {
  Seconds period;
  BucketSize threshold;
  Seconds negotiation;  ///< time to agree, after each check
  Seconds host_lead;  ///< how long before its data a gradient is announced: the host runs ahead of the device
};

/// Buckets of the gradients that are announced between two checks. The first check is at the start of the
/// backward pass. `wait` of a bucket is the time from its last gradient to the start of its sum.
/// @param times  of the layers; gradients of a layer are ready at the end of its backward pass
std::vector<Bucket> buckets_of_cycles(const std::vector<LayerGradients>& layers,
                                      const std::vector<LayerSeconds>& times, Bytes element,
                                      const FusionCycle& cycle);

/// Time of `collectives` small collectives of the workers' hosts, one after the other: each a binomial tree
/// over the servers and over the workers of a server, collectives (ceil(log2 servers) message between servers
/// + ceil(log2 workers of a server) message inside). Source: Horovod's MPIController
/// (horovod/common/mpi/mpi_controller.cc) gathers the names of ready gradients at rank 0 with MPI_Gather and
/// MPI_Gatherv and sends its answer with two MPI_Bcast.
Seconds negotiation_seconds(const Platform& platform, const std::vector<int>& endpoints, int collectives);

/// Keys of the buckets: `bucket`, `first_bucket`, `cycle`, `negotiation` and `host_lead`.
const Keys& gradient_bucket_keys();

/// The buckets by these keys. @throws InputError
std::vector<Bucket> read_gradient_buckets(const YamlMap& map, const Setting& setting, Bytes element,
                                          const Workload& workload);

}  // namespace stepcast
