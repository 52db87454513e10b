#pragma once

#include <vector>

#include "strategies/model_parallel/layer_segments.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Moves the time of the gradients of weights out of the layers' backward passes, into a segment for each
/// layer behind all others, so that a stage computes them when nothing waits for it. Source: P. Qi, X. Wan,
/// G. Huang, M. Lin, "Zero bubble pipeline parallelism", ICLR 2024, arXiv:2401.10241, section 2.1.
void split_weights(const std::vector<LayerCalls>& calls, Workload& workload);

/// The passes over these layers that compute the gradients of weights. @param sums  as in make_passes
/// @param segments  of the workload before split_weights
PassSegments weight_passes(LayerRange layers, int segments,
                           const std::vector<std::vector<CollectiveId>>& sums);

/// A backward pass of make_passes followed, after each of its steps, by the gradients of the weights of the
/// layers that the step has ended. @param sums, segments  as in weight_passes
PassSegments whole_backward(const PassSegments& passes, int segments,
                            const std::vector<std::vector<CollectiveId>>& sums);

}  // namespace stepcast
