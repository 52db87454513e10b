#include "strategies/mesh/real_partition.hpp"

#include <fmt/format.h>

#include "models/partition/tensor_shard.hpp"
#include "models/partition/token_shard.hpp"
#include "strategies/mesh/spatial_axis.hpp"

namespace stepcast {
namespace {

/// @returns reason why kernels cannot run stages whose layers are shared by ranks; empty where they can
std::string tensor_stage_problem(const Model& model, const ShardedModel& sharded, const Stages& starts) {
  for (const int start : starts) {
    if (start == 0 || start == std::ssize(model.layers)) continue;
    for (const int source : boundary_sources(model, start)) {
      if (source >= 0 && sharded.part.layers[source].output != model.layers[source].output)
        return fmt::format("a stage boundary after layer {}, whose output ranks share",
                           model.layers[source].name);
    }
  }
  return part_problem(model, sharded);
}

TokenDivision token_division(const MeshOptions& options) {
  return {options.sequence_parallel, options.mesh.context, options.context_exchange};
}

/// @returns reason why kernels cannot run a step whose ranks divide the tokens like this; empty where they
/// can
std::string token_problem_of_kernels(const Model& model, const MeshOptions& options) {
  const TokenDivision division = token_division(options);
  if (!division.any()) return "";
  const std::string tokens = division.by_tensor ? "sequence_parallel" : "mesh.context";
  if (options.mesh.pipeline > 1) return tokens + " beside mesh.pipeline";
  if (division.by_tensor && options.shard >= MemoryOptions::Zero::gradients)
    return "sequence_parallel with shard: gradients or parameters";
  return token_part_problem(model, options.mesh.tensor, division);
}

/// @returns reason why kernels cannot run experts that devices share in this way; empty where they can
std::string experts_problem(const Model& model, const MeshOptions& options) {
  const Mesh& mesh = options.mesh;
  if (options.has_experts && expert_layers(model).empty())
    return "experts in place of layers that the network has";
  if (mesh.expert == 1) return "";
  if (mesh.tensor > 1) return "mesh.expert beside mesh.tensor";
  if (mesh.context > 1) return "mesh.expert beside mesh.context";
  if (options.shard != MemoryOptions::Zero::none) return "shard beside mesh.expert";
  if (options.experts.deep_ep) return "expert_exchange: deep_ep";
  return options.experts.pads ? "capacity_factor" : "";
}

/// @returns reason why kernels cannot run the passes of this mesh; empty where they can
std::string pass_problem(const Model& model, const MeshOptions& options) {
  if (options.group.training.mixed) return "activations of 2 bytes";
  if (!options.recompute_last) return "recompute_last: false";
  if (options.recompute.early_stop) return "early_stop";
  if (options.splits_backward()) return options.dual() ? "schedule: dual_pipe" : "schedule: zero_bubble";
  if (has_shares(options.recomputed)) return "recomputation of parts of a layer";
  if (options.recompute.any() && has_dropout(model))
    return "recomputation of dropout, which would drop other elements the second time";
  if (options.offload == Offload::none) return "";
  return options.offload == Offload::optimizer ? "offload: optimizer" : "offload: activations";
}

/// @returns reason why kernels cannot run stages of this mesh; empty where they can
std::string stages_problem(const Model& model, const MeshOptions& options, const Stages& starts,
                           const ShardedModel& sharded) {
  const Mesh& mesh = options.mesh;
  if (std::string problem = experts_problem(model, options); !problem.empty()) return problem;
  if (options.shards_parameters() && options.shard_ways < mesh.copies()) {
    if (options.group.communication.all_reduce.channels > 1) return "shard_within with channels";
    if (options.sums_every_micro_batch() && options.group.micro_batches > 1)
      return "shard_within with accumulation and reshard_after_forward";
  }
  if (token_division(options).any()) return token_problem_of_kernels(model, options);
  return mesh.tensor > 1 ? tensor_stage_problem(model, sharded, starts) : "";
}

ModelPartition stages_partition(const Model& model, const MeshOptions& options, const Stages& starts,
                                const GroupPlan& groups) {
  ModelPartition partition;
  partition.form = ModelPartition::Form::stages;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) partition.stages.push_back({starts[i], starts[i + 1]});
  partition.ways = options.mesh.tensor;
  partition.tokens = token_division(options);
  partition.expert_ways = options.mesh.expert;
  partition.sums_every_micro_batch = options.sums_every_micro_batch() && options.group.micro_batches > 1;
  partition.shards_parameters = options.shards_parameters();
  const int stages = options.mesh.pipeline;
  for (int stage = 0; options.recompute.any() && stage < stages; ++stage)
    partition.recomputed.push_back(
        pipeline_schedule(options.order, stage, stages, options.group.micro_batches, options.chunks));
  partition.simulated_only = pass_problem(model, options);
  if (partition.simulated_only.empty())
    partition.simulated_only = stages_problem(model, options, starts, groups.sharded);
  return partition;
}

/// True if ranks share blocks, and differ in nothing else but their samples.
bool shares_blocks_only(const MeshOptions& options) {
  const Mesh& mesh = options.mesh;
  return mesh.tensor > 1 && mesh.pipeline == 1 && !options.has_experts && !token_division(options).any() &&
         options.shard == MemoryOptions::Zero::none;
}

/// Parts of every layer, of this form.
ModelPartition layers_partition(ModelPartition::Form form, int ways, std::string problem) {
  ModelPartition partition;
  partition.form = form;
  partition.ways = ways;
  partition.simulated_only = std::move(problem);
  return partition;
}

/// Parts of every sample.
ModelPartition positions_partition(const Model& model, const MeshOptions& options, std::int64_t batch) {
  ModelPartition partition;
  partition.form = ModelPartition::Form::positions;
  partition.spatial = options.spatial;
  partition.statistics_over = statistics_over(options);
  std::string& problem = partition.simulated_only;
  problem = kernel_problem(model, options.spatial, batch);
  if (problem.empty() && options.group.micro_batches > 1) problem = "accumulation over parts of a sample";
  if (problem.empty() && options.recompute.any()) problem = "recomputation";
  return partition;
}

/// The parts of samples or layers of which kernels compute one form at a time. Where they cannot, the ranks
/// of one process may train the undivided network together (ModelPartition::Form::group).
ModelPartition one_form(const Model& model, const MeshOptions& options, const GroupPlan& groups) {
  ModelPartition partition;
  if (options.divides_positions())
    partition = positions_partition(model, options, groups.micro_batch);
  else if (options.division == LayerDivision::filters)
    partition =
        layers_partition(ModelPartition::Form::filters, groups.ways, filter_part_problem(model, groups.ways));
  else
    partition = machine_partition(model, groups.ways, options.group, groups.micro_batch);
  std::string differs = pass_problem(model, options);
  if (differs.empty() && options.mesh.pipeline > 1) differs = "mesh.pipeline beside parts of samples";
  if (differs.empty() && options.shard != MemoryOptions::Zero::none)
    differs = "shard beside parts of samples or filters";
  if (partition.simulated_only.empty() && differs.empty()) return partition;
  const bool filters = options.division == LayerDivision::filters;
  if (differs.empty() && !filters)
    differs =
        statistics_problem(model, options.divides_positions() ? partition.statistics_over : 1, groups.ways);
  partition.form = differs.empty() ? ModelPartition::Form::group : ModelPartition::Form::other;
  partition.ways = groups.ways;
  if (!differs.empty()) partition.simulated_only = differs;
  return partition;
}

}  // namespace

ModelPartition real_partition(const Model& model, const MeshOptions& options, const Stages& starts,
                              const GroupPlan& groups) {
  const bool stages = options.division == LayerDivision::blocks && !options.divides_positions();
  ModelPartition partition =
      stages ? stages_partition(model, options, starts, groups) : one_form(model, options, groups);
  if (stages && shares_blocks_only(options))
    partition = layers_partition(ModelPartition::Form::blocks, groups.ways, partition.simulated_only);
  partition.micro_batch = groups.micro_batch;
  partition.micro_batches = options.group.micro_batches;
  return partition;
}

}  // namespace stepcast
