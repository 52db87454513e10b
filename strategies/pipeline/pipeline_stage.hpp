#pragma once

#include <vector>

#include "models/partition/pipeline_stages.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/model_parallel/layer_segments.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Options of a pipeline.
struct PipelineOptions {
  GroupOptions group;
  int stages = 1;
  int tensor = 1;  ///< devices that share the layers of a stage
  PipelineOrder order = PipelineOrder::one_forward_one_backward;
  int chunks = 1;  ///< runs of layers in each stage
  int zero = 0;    ///< 1: the replicas partition the optimizer state, 2: gradients too; 0: neither
};

PipelineOptions read_pipeline_options(const YamlMap& map);

/// First layers of all runs of layers (one for each chunk of each stage): the layers that `split_points`
/// names, those of equal numbers of blocks, or those that make the slowest run fastest.
Stages first_layers_of_runs(const YamlMap& map, const Setting& setting, const Trace& times, int runs);

/// A run of consecutive layers of a stage. A stage of an interleaved pipeline has several.
struct PipelineChunk {
  LayerRange segments;  ///< segments of the workload
  PassSegments passes;
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
  bool sum_every_micro_batch = false;  ///< gradients are scattered after every micro-batch (ZeRO 2)
  bool recompute = false;              ///< the forward pass is computed again before the backward pass
  bool reads_gradients = false;        ///< before the update, as loss scaling does: the host waits for them
  int prefetch = 1;
  Seconds step_overhead, exchange_overhead;
};

/// @returns chunk of the receiver that a message between stages is for
int chunk_of_tag(MessageTag tag);

/// One stage of a pipeline. In every step, for each action of the schedule (a pass of one chunk for one
/// micro-batch):
///
///   1. receives the activations of the layers before (forward) or the error signals of the layers after
///      (backward); the first stage loads input
///   2. computes the pass; backward with `recompute`: after the forward pass
///   3. sends activations to the next stage, or error signals to the previous one. The host waits for the
///      device before it issues the next pass (Megatron-LM: torch.cuda.synchronize after batch_isend_irecv)
///
/// and after the last action:
///
///   4. sums gradients over the replicas, if that does not overlap with the last actions
///   5. updates its parameters
///   6. ZeRO: gathers the shares of the parameters that the replicas have updated
///
/// Sources of the schedules: strategies/plan/plan.hpp.
Program pipeline_stage(Worker& worker, const PipelineStage& options);

/// Makes stage `number` of a pipeline whose runs of layers begin at `starts`: its actions, and its chunks,
/// whose collectives are added to the plan.
PipelineStage make_stage(const Setting& setting, const PipelineOptions& options, int number,
                         const Stages& starts, GroupPlan& groups);

Strategy pipeline_strategy();

}  // namespace stepcast
