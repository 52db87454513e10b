#pragma once

#include <vector>

#include "strategies/program/worker.hpp"

namespace stepcast {

/// Order in which a stage works on micro-batches.
enum class PipelineOrder {
  naive,                     ///< one micro-batch passes all stages forward and backward before the next
  gpipe,                     ///< all forward, then all backward
  one_forward_one_backward,  ///< backward as soon as possible, so that few micro-batches are in flight
  interleaved,               ///< the same with several chunks of layers in each stage, for a smaller bubble
};

/// One pass of one chunk for one micro-batch.
struct Turn {
  Work pass{};
  int micro_batch = 0;
  int chunk = 0;  ///< index among the chunks of the stage
};

/// The turns of stage `stage` of `stages` in one step. `interleaved`: every stage has `chunks` chunks,
/// through which groups of `stages` micro-batches go one after the other; `stages` divides `micro_batches`.
/// Sources: Y. Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism",
/// NeurIPS 2019; D. Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP
/// 2019, with a flush every step as in "Memory-efficient pipeline-parallel DNN training", ICML 2021;
/// interleaved: D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using
/// Megatron-LM", SC 2021, section 2.2.
std::vector<Turn> turns(PipelineOrder order, int stage, int stages, int micro_batches, int chunks = 1);

/// Micro-batches of each chunk between their forward and backward pass, at the moment with the largest total
/// over all chunks.
std::vector<int> most_in_flight(const std::vector<Turn>& turns, int chunks = 1);

}  // namespace stepcast
