#pragma once

#include <vector>

#include "strategies/model_parallel/layer_segments.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Consecutive layers whose parameters are gathered together where devices partition them (FSDP): a module
/// that PyTorch's fully_shard wraps. Where they do not, units gather nothing: a chunk is one, or each block
/// is if the host waits for the device between them.
struct ShardedUnit {
  PassSegments passes;
  PassSegments weights;               ///< schedules zero_bubble, dual_pipe: the gradients of weights
  PassSegments whole;                 ///< schedule dual_pipe: the backward pass with them
  PassSegments recomputed;            ///< its layers that recomputation computes again; may be none
  std::vector<CollectiveId> gathers;  ///< of its parameters, before a pass
  /// Sums over groups of devices of what each group has scattered, in the order of the unit's sums (hybrid
  /// sharding).
  std::vector<CollectiveId> all_reduces;
};

/// A run of consecutive layers of a stage. A stage of an interleaved pipeline has several.
struct PipelineChunk {
  LayerRange segments;  ///< segments of the workload
  std::vector<ShardedUnit> units;
  std::vector<CollectiveId> sums;  ///< sums of gradients that start after all actions, not during the last
  std::vector<CollectiveId>
      gathers;  ///< all-gathers of updated parameters, where each replica updates its share (ZeRO)
  RoleId previous = {}, next = {};               ///< roles with the layers before and after, if any
  int chunk_of_previous = 0, chunk_of_next = 0;  ///< their chunks with these layers
  Bytes from_previous, to_next;  ///< activations of a micro-batch; its error signals have the same size
};

/// Input of the program of the workers of one stage.
struct PipelineStage {
  int steps = 1;
  int micro_batches = 1;
  std::vector<PipelineAction> actions;
  std::vector<PipelineChunk> chunks;
  bool sum_every_micro_batch = false;  ///< gradients are scattered after every micro-batch (ZeRO 2 and 3)
  bool reshard = true;                 ///< parameters are gathered for every pass; false: once a step
  bool recompute_last = true;  ///< the last micro-batch, too, is computed again before its backward pass
  /// The host waits for the device before each unit, and after exchanges in it.
  bool synchronizes_units = false;
  bool waits_for_scatters = false;  ///< in a pass, for each sum of gradients
  bool reads_gradients = false;     ///< before the update, as loss scaling does: the host waits for them
  int prefetch = 1;
  Seconds step_overhead, exchange_overhead;
  Seconds host_update = {};  ///< update and copy of the parameters by the host (see host_update_time); 0: on
                             ///< the device
};

/// @returns chunk of the receiver that a message between stages is for
int chunk_of_tag(MessageTag tag);

/// One stage of a pipeline, or all layers where groups of devices share every sample or every layer (spatial,
/// filter and tensor parallelism, experts, networks partitioned over machines), which differ in the
/// collectives around the layers. In every step, for each action of the schedule (a pass of one chunk for one
/// micro-batch):
///
///   1. receives the activations of the layers before (forward) or the error signals of the layers after
///      (backward); the first stage loads input
///   2. computes the pass, unit by unit; backward with `recompute`: each after the forward pass of its
///      blocks. The parameters of a unit arrive while the unit before it computes
///   3. sends activations to the next stage, or error signals to the previous one. The host waits for the
///      device before it issues the next pass (Megatron-LM: torch.cuda.synchronize after batch_isend_irecv)
///
/// Two actions that run together (DualPipe) receive, compute and send together; the exchanges of each run
/// during the work of the other. After the last action:
///
///   4. sums gradients over the replicas, if that does not overlap with the last actions. Hybrid sharding
///      scatters them inside a group of devices and sums the shares over the groups; the next unit's scatter
///      waits for the scatter before
///   5. updates its parameters, or waits for the host that does
///   6. ZeRO: gathers the shares of the parameters that the replicas have updated
///
/// Sources of the schedules: strategies/plan/plan.hpp; of halos and groups of samples: N. Dryden et al.,
/// "Improving strong-scaling of CNN training by exploiting finer-grained parallelism", IPDPS 2019; of other
/// divisions: models/partition; of units: Y. Zhao et al., "PyTorch FSDP", VLDB 2023;
/// torch/distributed/fsdp/_fully_shard/_fsdp_param_group.py of pytorch/pytorch (prefetch of one unit;
/// post_backward waits for the reduce-scatter before).
Program pipeline_stage(Worker& worker, const PipelineStage& options);

}  // namespace stepcast
