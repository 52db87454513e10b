#pragma once

#include <vector>

#include "strategies/mesh/mesh.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Bytes of a micro-batch that each block of the part keeps between its passes, at its last layer; empty
/// without `offload: activations`.
std::vector<Bytes> kept_of_blocks(const MeshOptions& options, const GroupPlan& groups);

/// Lengthens the passes of blocks whose copies take longer than their kernels: a block's activations are
/// copied to the host during the next block's forward pass, and back during the backward pass of the block
/// after it, which waits. Source: Transformer Engine, transformer_engine/pytorch/cpu_offload.py
/// (AsyncDoubleBufferGroupOffloadHandler), as Megatron-Core's cpu_offloading uses it.
/// @param kept  see kept_of_blocks
void wait_for_copies(const Model& part, const std::vector<Bytes>& kept, BytesPerSecond link,
                     Workload& workload);

}  // namespace stepcast
