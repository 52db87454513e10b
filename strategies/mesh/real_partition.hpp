#pragma once

#include "models/partition/pipeline_stages.hpp"
#include "strategies/mesh/mesh.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The division of the network among the ranks of a mesh, for a runtime that computes with kernels.
ModelPartition real_partition(const Model& model, const MeshOptions& options, const Stages& starts,
                              const GroupPlan& groups);

}  // namespace stepcast
