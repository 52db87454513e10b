#include <fmt/format.h>

#include <algorithm>

#include "models/partition/tensor_shard.hpp"
#include "models/partition/token_shard.hpp"
#include "strategies/data_parallel/synchronous.hpp"
#include "strategies/data_parallel/zero.hpp"
#include "strategies/mesh/mesh.hpp"
#include "strategies/mesh/offload.hpp"
#include "strategies/mesh/stage_plan.hpp"
#include "strategies/mesh/zero_bubble.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/plan.hpp"

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
std::string experts_problem(const MeshOptions& options) {
  const Mesh& mesh = options.mesh;
  if (mesh.expert == 1) return "";
  if (mesh.tensor > 1) return "mesh.expert beside mesh.tensor";
  if (mesh.context > 1) return "mesh.expert beside mesh.context";
  if (options.shard != MemoryOptions::Zero::none) return "shard beside mesh.expert";
  if (options.experts.deep_ep) return "expert_exchange: deep_ep";
  return options.experts.pads ? "capacity_factor" : "";
}

/// @returns reason why kernels cannot run a step over this mesh; empty where they can
std::string simulated_only(const Model& model, const MeshOptions& options, const Stages& starts,
                           const ShardedModel& sharded) {
  const Mesh& mesh = options.mesh;
  if (options.group.training.mixed) return "activations of 2 bytes";
  if (!options.recompute_last) return "recompute_last: false";
  if (options.splits_backward()) return options.dual() ? "schedule: dual_pipe" : "schedule: zero_bubble";
  if (has_shares(options.recomputed)) return "recomputation of parts of a layer";
  if (options.recompute.any() && has_dropout(model)) return kRecomputedDropout;
  if (std::string problem = experts_problem(options); !problem.empty()) return problem;
  if (options.offload != Offload::none)
    return options.offload == Offload::optimizer ? "offload: optimizer" : "offload: activations";
  if (options.shards_parameters() && options.shard_ways < mesh.copies()) {
    if (options.group.communication.all_reduce.channels > 1) return "shard_within with channels";
    if (options.sums_every_micro_batch() && options.group.micro_batches > 1)
      return "shard_within with accumulation and reshard_after_forward";
  }
  if (token_division(options).any()) return token_problem_of_kernels(model, options);
  return mesh.tensor > 1 ? tensor_stage_problem(model, sharded, starts) : "";
}

/// The division of the network among the ranks of the plan.
ModelPartition mesh_partition(const Model& model, const MeshOptions& options, const Stages& starts,
                              const GroupPlan& groups) {
  ModelPartition partition;
  partition.form = ModelPartition::Form::stages;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) partition.stages.push_back({starts[i], starts[i + 1]});
  partition.ways = options.mesh.tensor;
  partition.tokens = token_division(options);
  partition.expert_ways = options.mesh.expert;
  partition.micro_batch = groups.micro_batch;
  partition.micro_batches = options.group.micro_batches;
  partition.sums_every_micro_batch = options.sums_every_micro_batch();
  partition.shards_parameters = options.shards_parameters();
  const int stages = options.mesh.pipeline;
  for (int stage = 0; options.recompute.any() && stage < stages; ++stage)
    partition.recomputed.push_back(
        pipeline_schedule(options.order, stage, stages, options.group.micro_batches, options.chunks));
  partition.simulated_only = simulated_only(model, options, starts, groups.sharded);
  return partition;
}

/// Groups of `size` of the ranks of a stage, whose ranks lie `stride` apart.
std::vector<RankId> strided(int first, int ranks, int stride, int size) {
  std::vector<RankId> groups;
  for (int block = first; block < first + ranks; block += stride * size) {
    for (int offset = 0; offset < stride; ++offset) {
      for (int i = 0; i < size; ++i) groups.emplace_back(block + offset + i * stride);
    }
  }
  return groups;
}

/// Pairs of groups of `size` ranks as groups of twice as many. @param ranks  all first groups, then all
/// second
std::vector<RankId> joined_groups(const std::vector<RankId>& ranks, int size) {
  const auto half = static_cast<std::ptrdiff_t>(ranks.size() / 2);
  std::vector<RankId> joined;
  for (auto group = ranks.begin(); group != ranks.begin() + half; group += size) {
    joined.insert(joined.end(), group, group + size);
    joined.insert(joined.end(), group + half, group + half + size);
  }
  return joined;
}

/// Members of the groups that sum the gradients of stage `stage`; with dual_pipe also those of the stage from
/// the other end.
std::vector<RankId> sum_members(const MeshOptions& options, int stage, int stride, int size) {
  const int ranks = options.mesh.stage(), other = options.mesh.pipeline - 1 - stage;
  std::vector<RankId> members = strided(stage * ranks, ranks, stride, size);
  if (!options.dual()) return members;
  const std::vector<RankId> others = strided(other * ranks, ranks, stride, size);
  members.insert(members.end(), others.begin(), others.end());
  return joined_groups(members, size);
}

/// Adds the communicators of stage `stage`, and sets groups.group to that of the tensor axis.
/// @param twin  those of the stage with the same layers (dual_pipe), which sums gradients with this one
StageGroups add_communicators(const Setting& setting, const MeshOptions& options, int stage,
                              const StageGroups* twin, GroupPlan& groups) {
  Plan& plan = groups.plan;
  const Mesh& mesh = options.mesh;
  const int ranks = mesh.stage(), first = stage * ranks, shards = options.shard_ways;
  const auto add_groups = [&](int stride, int size) {
    return add(plan,
               communicator(setting.platform, plan.endpoints, strided(first, ranks, stride, size), size));
  };
  const auto add_sums = [&](int stride, int size) {
    const CommunicatorId sums =
        add(plan, communicator(setting.platform, plan.endpoints, sum_members(options, stage, stride, size),
                               options.dual() ? 2 * size : size));
    apply(groups.options.communication, plan.communicators.back());
    return sums;
  };
  groups.group = add_groups(1, mesh.tensor);
  StageGroups places = twin != nullptr ? *twin : StageGroups{};
  if (twin == nullptr) places.shards = groups.replicas = add_sums(mesh.tensor, mesh.copies());
  if (mesh.context > 1) groups.context = add_groups(mesh.tensor, mesh.context);
  if (mesh.expert > 1) groups.expert = add_groups(mesh.tensor, mesh.expert);
  if (mesh.expert > 1 && twin == nullptr)
    places.expert_copies = add_sums(mesh.tensor * mesh.expert, mesh.copies() / mesh.expert);
  if (options.shards_parameters() && shards < mesh.copies()) {
    places.shards = add_sums(mesh.tensor, shards);
    places.shard_copies = add_sums(mesh.tensor * shards, mesh.copies() / shards);
  }
  if (options.dual() && twin == nullptr) places.made = std::make_shared<std::map<int, RunSums>>();
  return places;
}

/// Seconds of all passes of one step, for the mean stage.
double mean_work(const Workload& workload, std::size_t layers, const MeshOptions& options) {
  double sum = 0;
  for (std::size_t i = 0; i < kSegmentsPerLayer * layers; ++i) {
    const LayerSeconds& segment = workload.median[i];
    const std::size_t layer = i / kSegmentsPerLayer;
    const double again = options.recomputed.empty() ? 0 : options.recomputed[layer].again;
    const double forward = (1 + again * options.recomputed_share()) * segment.forward;
    sum += options.group.micro_batches * (forward + segment.backward) + segment.update;
  }
  return sum / options.mesh.pipeline;
}

/// Makes every copy update its share only.
void share_updates(const Device& device, const std::vector<LayerCost>& costs, const MeshOptions& options,
                   const Model& part, Trace& times) {
  if (options.shard == MemoryOptions::Zero::none) return;
  for (std::size_t i = 0; i < times.layers.size(); ++i) {
    const bool experts = part.layers[i].kind == LayerKind::experts;
    const int ways = options.shard_ways / (experts ? options.mesh.expert : 1);
    const double launches = costs[i].update.kernels * device.kernel_gap().value;
    for (double& seconds : times.layers[i].update.seconds) seconds = shared_update(seconds, launches, ways);
  }
}

void add_channels(int from, int to, Plan& plan) {
  plan.channels.emplace_back(from, to);
  plan.channels.emplace_back(to, from);
}

void add_role(int number, int ranks, PipelineStage stage, Plan& plan) {
  plan.roles.push_back({fmt::format("stage {}", number), RankId(number * ranks), ranks, 0, true,
                        [stage = std::make_shared<const PipelineStage>(std::move(stage))](Worker& worker) {
                          return pipeline_stage(worker, *stage);
                        }});
  if (number > 0) add_channels(number - 1, number, plan);
}

/// The keys of the axes, which are named where the network cannot be divided along them.
struct MeshKeys {
  YamlValue pipeline, context, tensor, expert;
};

/// The part of a device: each axis changes the layers, and adds its exchanges.
ShardedModel divided_model(const Model& model, const MeshOptions& options, const MeshKeys& keys) {
  const Mesh& mesh = options.mesh;
  if (mesh.tensor > 1) refuse_if(tensor_problem(model, mesh.tensor), keys.tensor);
  ShardedModel sharded = shard_tensor(model, mesh.tensor);
  if (options.sequence_parallel) {
    refuse_if(token_problem(model, sharded.part, mesh.tensor), keys.tensor);
    divide_tokens(model, mesh.tensor, sharded);
  }
  if (mesh.expert > 1) {
    const std::vector<std::size_t> layers = expert_layers(model);
    if (layers.empty()) keys.expert.refuse("the network has no layers of kind experts");
    Experts experts = options.experts;
    experts.count = model.layers[layers.front()].experts;
    experts.top = model.layers[layers.front()].top;
    refuse_if(expert_problem(model, experts), keys.expert);
    share_experts(experts, sharded);
  }
  if (mesh.context > 1) {
    refuse_if(context_problem(sharded.part, mesh.context, options.context_exchange), keys.context);
    divide_context(mesh.context, options.context_exchange, sharded);
  }
  return sharded;
}

/// Adds the stages, each with its program.
/// @param offloaded  see kept_of_blocks
/// @return the memory of the fullest
Memory add_stages(const Setting& setting, const MeshOptions& options, const Stages& starts,
                  const std::vector<Bytes>& offloaded, GroupPlan& groups) {
  Memory fullest;
  const int stages = options.mesh.pipeline;
  std::vector<StageGroups> places;
  for (int number = 0; number < stages; ++number) {
    const bool second = options.dual() && number >= stages / 2;
    const StageGroups twin = second ? places[static_cast<std::size_t>(stages - 1 - number)] : StageGroups{};
    places.push_back(add_communicators(setting, options, number, second ? &twin : nullptr, groups));
    PipelineStage stage = make_stage(setting, options, number, starts, places.back(), groups);
    const Memory memory = stage_memory(options, stage, offloaded, groups);
    if (memory.total() > fullest.total()) fullest = memory;
    add_role(number, options.mesh.stage(), std::move(stage), groups.plan);
  }
  if (options.order == PipelineOrder::interleaved && stages > 2) add_channels(stages - 1, 0, groups.plan);
  return fullest;
}

/// The devices in the order of ranks, which count tensor, context, data and pipeline. @param axes  from the
/// one whose devices lie next to each other
std::vector<int> placed(const Mesh& mesh, const std::vector<Axis>& axes, const std::vector<int>& devices) {
  const int sizes[] = {mesh.tensor, mesh.context, mesh.data, mesh.pipeline};
  int strides[] = {0, 0, 0, 0}, stride = 1;
  for (const Axis axis : axes) {
    strides[static_cast<std::size_t>(axis)] = stride;
    stride *= sizes[static_cast<std::size_t>(axis)];
  }
  std::vector<int> endpoints;
  for (int rank = 0; rank < stride; ++rank) {
    int rest = rank, place = 0;
    for (std::size_t axis = 0; axis < std::size(sizes); ++axis) {
      place += rest % sizes[axis] * strides[axis];
      rest /= sizes[axis];
    }
    endpoints.push_back(devices[place]);
  }
  return endpoints;
}

/// Divides the network over the mesh and gives every stage its program.
Plan plan_mesh(const YamlMap& map, const MeshKeys& keys, const Setting& setting, MeshOptions options) {
  Mesh& mesh = options.mesh;
  GroupPlan groups = begin_groups(setting, options.group, mesh.replica(), keys.pipeline);
  groups.sharded = divided_model(setting.model, options, keys);
  options.recomputed = recomputed_layers(groups.sharded.part, options.recompute);
  mesh.data = setting.workers() / mesh.replica();
  if (options.dual()) options.shard_ways *= 2;
  if (!options.axes.empty()) groups.plan.endpoints = placed(mesh, options.axes, setting.devices);
  set_samples(setting, mesh.data, groups);
  groups.ways = mesh.context * mesh.tensor * mesh.expert;
  groups.plan.communicators.clear();
  groups.captured_trace = map.maybe("part_trace");

  Trace times = part_times(setting, groups);
  const std::vector<LayerCost> costs = layer_costs(groups.sharded.part, setting.device.choice());
  share_updates(setting.device, costs, options, groups.sharded.part, times);
  const Stages starts = first_layers_of_runs(map, keys.pipeline, setting, times, options);
  const std::vector<Bytes> offloaded = kept_of_blocks(options, groups);
  const Memory fullest = add_stages(setting, options, starts, offloaded, groups);
  Workload workload =
      segmented_workload(times, costs, setting.device, groups.calls, options.group.halo_overlap);
  scale(workload, options.group.training.compute_factor);
  const bool splits = options.splits_backward();
  if (splits || has_shares(options.recomputed)) add_shares(options.recomputed, times.layers.size(), workload);
  workload.input = groups.micro_batch * setting.sample_size / mesh.context;
  const double work = mean_work(workload, times.layers.size(), options);
  if (!offloaded.empty()) wait_for_copies(groups.sharded.part, offloaded, options.host_link, workload);
  if (splits) split_weights(groups.calls, workload);
  Plan plan = std::move(groups.plan);
  plan.partition = mesh_partition(setting.model, options, starts, groups);
  plan.workloads.push_back(std::move(workload));
  plan.summed_gradients = mesh.data;  // the sum over micro-batches counts as one gradient
  finish_group_plan(setting, groups, times, fullest, plan);
  note_ineffective_group(groups, options.scatters, plan);
  if (!options.recompute.any())
    note_ineffective(map, {"synchronize_checkpoints"}, "without recompute", plan.ineffective_keys);
  if (mesh.copies() == 1)
    note_ineffective(map, {"zero", "shard", "fp32_gradients"}, "with one replica", plan.ineffective_keys);
  plan.figures = [work, stages = mesh.pipeline](const Records&, double seconds) {
    return Figures{{"stages", stages}, {"idle_share", 1 - work / seconds}};
  };
  return plan;
}

Plan read_pipeline(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, pipeline_keys());
  MeshOptions options = read_pipeline_options(map);
  if (map.has("accumulation"))
    map.at("accumulation").refuse("not valid with kind: pipeline; give micro_batches");
  const YamlValue stages = map.at("stages");
  options.shard_ways = std::max(1, setting.workers() / options.mesh.pipeline / options.mesh.tensor);
  const YamlValue tensor = map.has("tensor") ? map.at("tensor") : stages;
  return plan_mesh(map, {stages, stages, tensor, stages}, setting, options);
}

/// True if the mapping has a key that only a mesh has.
bool has_mesh(const YamlMap& map) {
  const auto again = map.maybe("recompute");
  const bool parts = again && again->node().text != "true" && again->node().text != "false";
  return parts || std::ranges::any_of(mesh_keys(), [&](const Key& key) { return map.has(key.name); });
}

void note_ineffective_axes(const YamlMap& map, const MeshOptions& options, IneffectiveKeys& found) {
  const Mesh& mesh = options.mesh;
  if (mesh.tensor == 1) note_ineffective(map, {"sequence_parallel"}, "without mesh.tensor", found);
  if (mesh.context == 1) note_ineffective(map, {"context_exchange"}, "without mesh.context", found);
  if (mesh.expert == 1) note_ineffective(map, {"capacity_factor", "imbalance"}, "without mesh.expert", found);
}

Plan read_over_mesh(const YamlValue& value, const Setting& setting) {
  const Strategy plain = synchronous_strategy();
  const YamlMap map = read_map(value, synchronous_over_mesh().keys);
  if (!has_mesh(map)) return plain.plan(value, setting);
  const MeshOptions options = read_mesh_options(map, setting);
  const YamlValue mesh = map.has("mesh") ? map.at("mesh") : map.value();
  const YamlMap axes = mesh.any_map();
  const auto axis = [&](const char* name) { return axes.has(name) ? axes.at(name) : mesh; };
  const MeshKeys keys{axis("pipeline"), axis("context"), axis("tensor"), axis("expert")};
  Plan plan = plan_mesh(map, keys, setting, options);
  note_ineffective(map, {"first_bucket"}, "with a mesh of devices", plan.ineffective_keys);
  note_ineffective_axes(map, options, plan.ineffective_keys);
  if (!options.group.training.mixed)
    note_ineffective(map, {"fp32_gradients"}, "with precision: f32", plan.ineffective_keys);
  return plan;
}

}  // namespace

Strategy pipeline_strategy() {
  Strategy strategy{
      "pipeline",
      "stages of layers, with data and tensor parallelism inside each stage",
      "Y. Huang et al., GPipe, NeurIPS 2019; D. Narayanan et al., PipeDream, SOSP 2019; D. Narayanan et "
      "al., Efficient large-scale language model training on GPU clusters using Megatron-LM, SC 2021",
      read_pipeline,
      pipeline_keys(),
      "{kind: pipeline, stages: 2, micro_batches: 2}",
      "small-transformer",
      {"gpipe"}};
  strategy.exchanges_every_step = false;
  return strategy;
}

Strategy synchronous_over_mesh() {
  Strategy strategy = synchronous_strategy();
  strategy.plan = read_over_mesh;
  *std::ranges::find(strategy.keys, "recompute", &Key::name) = recompute_key();
  strategy.keys = joined_keys({strategy.keys, mesh_keys()});
  return strategy;
}

}  // namespace stepcast
