#pragma once

#include <map>
#include <memory>
#include <vector>

#include "models/partition/pipeline_stages.hpp"
#include "strategies/mesh/mesh.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/model_parallel/pipeline_stage.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// Sums of the gradients of a run of layers, and the gathers of its parameters (ZeRO).
struct RunSums {
  std::vector<Bucket> buckets;
  std::vector<CollectiveId> gathers;
};

/// Groups of the devices of a stage, as communicators.
struct StageGroups {
  CommunicatorId own{0};        ///< copies of the same part of the same layers, which may partition it
  CommunicatorId common{0};     ///< devices that hold the layers which devices of a group have in common
  CommunicatorId shard_copies;  ///< devices with the same partition, if not all copies share one
  /// dual_pipe: the sums of the two stages that have the same runs of layers, by first layer.
  std::shared_ptr<std::map<int, RunSums>> made = {};
};

/// Makes stage `number` of a pipeline whose runs of layers begin at `starts`: its actions, and its chunks,
/// whose collectives are added to the plan.
PipelineStage make_stage(const Setting& setting, const MeshOptions& options, int number, const Stages& starts,
                         const StageGroups& places, GroupPlan& groups);

/// Runs of layers of the part that are gathered together, last first, clamped to `layers`: the blocks of the
/// network (layers named block7_...) and the layers between them, or buckets.
std::vector<LayerRange> sharded_units(const Model& part, LayerRange layers, const MeshOptions& options);

/// Time in which the host updates a device's share of these parameters and the device gets them. The copies
/// of gradients overlap with the backward pass. Adam reads weights, gradients and two moments and writes the
/// first, the last and a copy of 2 bytes: 30 bytes an element of host memory. Sources: J. Ren et al.,
/// "ZeRO-Offload", USENIX ATC 2021, section 4.1 (what is copied, and when); DeepSpeed, csrc/adam/cpu_adam.cpp
/// (arrays); that memory bandwidth bounds it is assumed.
Seconds host_update_time(double parameters, const MeshOptions& options);

/// Memory of a stage at the moment with most micro-batches in flight. It holds the error signals of one chunk
/// at a time.
/// @param offloaded  see kept_of_blocks (offload.hpp)
Memory stage_memory(const MeshOptions& options, const PipelineStage& stage,
                    const std::vector<Bytes>& offloaded, const GroupPlan& groups);

}  // namespace stepcast
