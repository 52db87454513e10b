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
  dual_pipe,                 ///< micro-batches enter at both ends; each stage has the layers of two
  zero_bubble,               ///< ZB-H1: 1F1B whose gradients of weights wait until nothing else can run
};

/// One pass of one chunk for one micro-batch.
struct PipelineAction {
  Work pass{};
  int micro_batch = 0;
  int chunk = 0;          ///< index among the chunks of the stage
  bool weights = false;   ///< zero_bubble, dual_pipe: the gradients of weights, left out by a backward pass
  bool whole = false;     ///< dual_pipe: a backward pass that does not leave them out
  bool together = false;  ///< dual_pipe: runs at the same time as the next action
};

/// The actions of stage `stage` of `stages` in one step. `interleaved`: every stage has `chunks` chunks,
/// through which groups of `stages` micro-batches go one after the other; `stages` divides `micro_batches`.
/// Sources: Y. Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism",
/// NeurIPS 2019; D. Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP
/// 2019, with a flush every step as in "Memory-efficient pipeline-parallel DNN training", ICML 2021;
/// interleaved: D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using
/// Megatron-LM", SC 2021, section 2.2; zero_bubble: P. Qi et al., "Zero bubble pipeline parallelism", ICLR
/// 2024, section 2.2: stage i leaves the weights of the last i micro-batches pending. dual_pipe: chunk 0 of
/// stage i has the layers of its place, chunk 1 those of the place from the other end; half of the
/// micro-batches, an even number, goes through each. Source: DeepSeek-AI, "DeepSeek-V3 technical report",
/// arXiv:2412.19437, section 3.2.1; deepseek-ai/DualPipe, dualpipe/dualpipe.py, step.
std::vector<PipelineAction> pipeline_schedule(PipelineOrder order, int stage, int stages, int micro_batches,
                                              int chunks = 1);

/// Micro-batches of each chunk between their forward pass and the gradients of their weights, at the moment
/// with the largest total over all chunks.
std::vector<int> most_in_flight(const std::vector<PipelineAction>& actions, int chunks = 1);

}  // namespace stepcast
