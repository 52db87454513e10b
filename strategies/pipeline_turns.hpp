#pragma once

#include <vector>

#include "strategies/workload.hpp"

namespace stepcast {

/// When a stage works on which micro-batch.
enum class PipelineOrder {
  naive,                     ///< one micro-batch goes all the way and back before the next
  gpipe,                     ///< all forward, then all backward
  one_forward_one_backward,  ///< backward as soon as possible: few micro-batches are held
  interleaved,               ///< the same with several chunks of layers a stage: a smaller bubble
};

struct Turn {
  Work pass{};
  int micro_batch = 0;
  int chunk = 0;  ///< of the stage's own
};

/// The turns of stage `stage` of `stages` in one step. `interleaved`: every stage has `chunks` chunks,
/// through which groups of `stages` micro-batches go one after the other; `stages` divides `micro_batches`.
/// Sources: Y. Huang et al., "GPipe: efficient training of giant neural networks using pipeline parallelism",
/// NeurIPS 2019; D. Narayanan et al., "PipeDream: generalized pipeline parallelism for DNN training", SOSP
/// 2019, with a flush every step as in "Memory-efficient pipeline-parallel DNN training", ICML 2021;
/// interleaved: D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using
/// Megatron-LM", SC 2021, section 2.2.
std::vector<Turn> turns(PipelineOrder order, int stage, int stages, int micro_batches, int chunks = 1);

/// Micro-batches of each chunk that are between their forward and backward pass, at the moment at which most
/// are, over all chunks.
std::vector<int> most_in_flight(const std::vector<Turn>& turns, int chunks = 1);

}  // namespace stepcast
