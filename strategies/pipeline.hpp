#pragma once

#include <vector>

#include "strategies/pieces.hpp"
#include "strategies/pipeline_turns.hpp"
#include "strategies/strategy.hpp"
#include "strategies/worker.hpp"

namespace stepcast {

/// A run of layers of a stage; where chunks are interleaved, a stage has several.
struct PipelineChunk {
  LayerRange pieces;  ///< of the workload
  Passes passes;
  std::vector<int> sums;         ///< of gradients after all turns, where they do not go on beside the last
  std::vector<int> gathers;      ///< of updated parameters, where each replica updates its share (ZeRO)
  int previous = -1, next = -1;  ///< roles that have the layers before and after; -1: none
  int chunk_of_previous = 0, chunk_of_next = 0;  ///< there
  Bytes from_previous, to_next;                  ///< activations of a micro-batch; error signals are as large
};

/// One stage of a pipeline, done by a group of devices for every replica.
struct PipelineStage {
  int steps = 1;
  int micro_batches = 1;
  std::vector<Turn> turns;
  std::vector<PipelineChunk> chunks;
  bool sum_every_micro_batch = false;  ///< gradients are scattered after each (ZeRO 2), not after the last
  bool recompute = false;              ///< the forward pass is done again before the backward pass
  int prefetch = 1;
  Seconds step_overhead, exchange_overhead;
};

/// Chunk of the receiver that a message between stages is for.
int chunk_of_tag(int tag);

Program pipeline_stage(Worker& worker, const PipelineStage& options);

/// `strategy: {kind: pipeline}`: stages of layers, with data and tensor parallelism inside each.
Plan read_pipeline(const YamlValue& value, const Setting& setting);

}  // namespace stepcast
