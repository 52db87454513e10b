#include <fmt/format.h>

#include <algorithm>

#include "models/partition/tensor_shard.hpp"
#include "strategies/data_parallel/synchronous.hpp"
#include "strategies/data_parallel/zero.hpp"
#include "strategies/mesh/mesh.hpp"
#include "strategies/mesh/pipeline_stage.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {
namespace {

/// @returns reason why kernels cannot run stages whose layers are shared by ranks; empty where they can
std::string tensor_stage_problem(const Model& model, const ShardedModel& sharded, const Stages& starts) {
  for (const int start : starts) {
    if (start == 0 || start == static_cast<int>(model.layers.size())) continue;
    for (const int source : boundary_sources(model, start)) {
      const auto i = static_cast<std::size_t>(source);
      if (source >= 0 && sharded.part.layers[i].output != model.layers[i].output)
        return fmt::format("a stage boundary after layer {}, whose output ranks share", model.layers[i].name);
    }
  }
  return part_problem(model, sharded);
}

/// The division of the network among the ranks of the plan.
ModelPartition pipeline_partition(const Model& model, const MeshOptions& options, const Stages& starts,
                                  const GroupPlan& groups) {
  ModelPartition partition;
  partition.form = ModelPartition::Form::stages;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) partition.stages.push_back({starts[i], starts[i + 1]});
  partition.ways = options.mesh.tensor;
  partition.micro_batch = groups.micro_batch;
  partition.micro_batches = options.group.micro_batches;
  partition.sums_every_micro_batch = options.sums_every_micro_batch();
  const int stages = options.mesh.pipeline;
  for (int stage = 0; options.group.recompute && stage < stages; ++stage)
    partition.recomputed.push_back(
        pipeline_schedule(options.order, stage, stages, options.group.micro_batches, options.chunks));
  if (options.mesh.tensor > 1) partition.simulated_only = tensor_stage_problem(model, groups.sharded, starts);
  if (options.group.recompute && has_dropout(model)) partition.simulated_only = kRecomputedDropout;
  if (options.group.training.mixed) partition.simulated_only = "activations of 2 bytes";
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

/// Adds the communicators of stage `stage`, and sets groups.group to that of the tensor axis.
StageGroups add_communicators(const Setting& setting, const MeshOptions& options, int stage,
                              GroupPlan& groups) {
  Plan& plan = groups.plan;
  const Mesh& mesh = options.mesh;
  const int ranks = mesh.stage(), first = stage * ranks, shards = options.shard_ways;
  const auto add_groups = [&](int stride, int size) {
    return add(plan,
               communicator(setting.platform, plan.endpoints, strided(first, ranks, stride, size), size));
  };
  const auto add_sums = [&](int stride, int size) {
    const CommunicatorId sums = add_groups(stride, size);
    apply(groups.options.communication, plan.communicators.back());
    return sums;
  };
  groups.group = add_groups(1, mesh.tensor);
  StageGroups places;
  places.copies = places.shards = groups.replicas = add_sums(mesh.tensor, mesh.data);
  if (options.shards_parameters() && shards < mesh.data) {
    places.shards = add_sums(mesh.tensor, shards);
    places.shard_copies = add_sums(mesh.tensor * shards, mesh.data / shards);
  }
  return places;
}

LayerRange layers_of(LayerRange segments) {
  return {segments.first / kSegmentsPerLayer, segments.last / kSegmentsPerLayer};
}

/// Bytes of the parameters of two units next to each other, of which one computes while the other arrives.
Bytes gathered_parameters(const Model& part, LayerRange layers, const MeshOptions& options) {
  double before = 0, most = 0;
  for (const LayerRange& unit : sharded_units(part, layers, options)) {
    const auto count = static_cast<double>(all_parameters(stage_model(part, unit.first, unit.last)));
    most = std::max(most, before + count);
    before = count;
  }
  return most * options.group.training.element();
}

/// Adds what FSDP holds beside its partition: gathered parameters, and gradients before their scatter.
void add_unsharded(const Model& part, const PipelineStage& stage, const MeshOptions& options, Memory& sum) {
  double all = 0, largest = 0;
  for (const PipelineChunk& chunk : stage.chunks) {
    const LayerRange layers = layers_of(chunk.segments);
    sum.gathered = std::max(sum.gathered, gathered_parameters(part, layers, options));
    for (const LayerRange& unit : sharded_units(part, layers, options)) {
      const auto count = static_cast<double>(all_parameters(stage_model(part, unit.first, unit.last)));
      all += count;
      largest = std::max(largest, count);
    }
  }
  const Bytes element = options.group.training.element();
  if (!options.reshard) sum.gathered = all * element;
  const bool accumulates = !options.reshard && stage.micro_batches > 1;
  sum.gradients += accumulates ? all * options.gradient : largest * element;
}

/// Memory of a stage at the moment with most micro-batches in flight. It holds the error signals of one chunk
/// at a time.
Memory stage_memory(const MeshOptions& options, const PipelineStage& stage, const GroupPlan& groups) {
  MemoryOptions memory = groups.memory;
  memory.zero_ways = options.shard_ways;
  if (memory.zero_ways > 1) memory.zero = options.shard;
  memory.fp32_gradients = options.gradient > options.group.training.element();
  memory.half_copy = !options.shards_parameters();
  const std::vector<int> held = most_in_flight(stage.actions, options.chunks);
  Memory sum;
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    const LayerRange layers = layers_of(stage.chunks[i].segments);
    memory.in_flight = held[i];
    const Memory chunk = training_memory(stage_model(groups.sharded.part, layers.first, layers.last), memory);
    sum.weights += chunk.weights;
    sum.gradients += chunk.gradients;
    sum.optimizer_state += chunk.optimizer_state;
    sum.activations += chunk.activations;
    sum.input += chunk.input;
    sum.error_signals = std::max(sum.error_signals, chunk.error_signals);
    sum.workspace = std::max(sum.workspace, chunk.workspace);
    sum.allocator += chunk.allocator;
  }
  if (memory.zero == MemoryOptions::Zero::parameters) add_unsharded(groups.sharded.part, stage, options, sum);
  return sum;
}

/// Seconds of all passes of one step, for the mean stage.
double mean_work(const Workload& workload, const MeshOptions& options) {
  double sum = 0;
  for (const LayerSeconds& segment : workload.median) {
    const double forward = (options.group.recompute ? 2 : 1) * segment.forward;
    sum += options.group.micro_batches * (forward + segment.backward) + segment.update;
  }
  return sum / options.mesh.pipeline;
}

/// Makes every replica update its share only.
void share_updates(const Device& device, const std::vector<LayerCost>& costs, int replicas, Trace& times) {
  for (std::size_t i = 0; i < times.layers.size(); ++i) {
    const double launches = costs[i].update.kernels * device.kernel_gap().value;
    for (double& seconds : times.layers[i].update.seconds)
      seconds = shared_update(seconds, launches, replicas);
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

/// Keys that are wrong if the network cannot be divided in this way.
struct MeshKeys {
  YamlValue stages, tensor;
};

/// Adds the stages, each with its program, and sets the memory of the fullest.
Memory add_stages(const Setting& setting, const MeshOptions& options, const Stages& starts,
                  GroupPlan& groups) {
  Memory fullest;
  const int stages = options.mesh.pipeline;
  for (int number = 0; number < stages; ++number) {
    const StageGroups places = add_communicators(setting, options, number, groups);
    PipelineStage stage = make_stage(setting, options, number, starts, places, groups);
    const Memory memory = stage_memory(options, stage, groups);
    if (memory.total() > fullest.total()) fullest = memory;
    add_role(number, options.mesh.stage(), std::move(stage), groups.plan);
  }
  if (options.chunks > 1 && stages > 2) add_channels(stages - 1, 0, groups.plan);
  return fullest;
}

/// Divides the network over the mesh and gives every stage its program.
Plan plan_mesh(const YamlMap& map, const MeshKeys& keys, const Setting& setting, MeshOptions options) {
  Mesh& mesh = options.mesh;
  GroupPlan groups = begin_groups(setting, options.group, mesh.pipeline * mesh.tensor, keys.stages);
  if (mesh.tensor > 1) refuse_if(tensor_problem(setting.model, mesh.tensor), keys.tensor);
  mesh.data = setting.workers() / mesh.pipeline / mesh.tensor;
  set_samples(setting, mesh.data, groups);
  groups.ways = mesh.tensor;
  groups.plan.communicators.clear();
  groups.sharded = shard_tensor(setting.model, mesh.tensor);
  groups.captured_trace = map.maybe("part_trace");

  Trace times = part_times(setting, groups);
  const std::vector<LayerCost> costs = layer_costs(groups.sharded.part, setting.device.choice());
  if (options.shard != MemoryOptions::Zero::none)
    share_updates(setting.device, costs, options.shard_ways, times);
  const Stages starts =
      first_layers_of_runs(map, keys.stages, setting, times, mesh.pipeline * options.chunks);
  const Memory fullest = add_stages(setting, options, starts, groups);
  Workload workload =
      segmented_workload(times, costs, setting.device, groups.calls, options.group.halo_overlap);
  scale(workload, options.group.training.compute_factor);
  workload.input = static_cast<double>(groups.micro_batch) * setting.sample_size;
  const double work = mean_work(workload, options);
  Plan plan = std::move(groups.plan);
  plan.partition = pipeline_partition(setting.model, options, starts, groups);
  plan.workloads.push_back(std::move(workload));
  plan.summed_gradients = mesh.data;  // the sum over micro-batches counts as one gradient
  finish_group_plan(setting, groups, times, fullest, plan);
  note_ineffective_group(groups, options.scatters, plan);
  if (mesh.data == 1)
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
  return plan_mesh(map, {stages, map.has("tensor") ? map.at("tensor") : stages}, setting, options);
}

/// True if the mapping has a key that only a mesh has.
bool has_mesh(const YamlMap& map) {
  return std::ranges::any_of(mesh_keys(), [&](const Key& key) { return map.has(key.name); });
}

Plan read_over_mesh(const YamlValue& value, const Setting& setting) {
  const Strategy plain = synchronous_strategy();
  const YamlMap map = read_map(value, joined_keys({plain.keys, mesh_keys()}));
  if (!has_mesh(map)) return plain.plan(value, setting);
  const MeshOptions options = read_mesh_options(map, setting);
  const YamlValue mesh = map.has("mesh") ? map.at("mesh") : map.value();
  const YamlMap axes = mesh.any_map();
  const auto axis = [&](const char* name) { return axes.has(name) ? axes.at(name) : mesh; };
  Plan plan = plan_mesh(map, {axis("pipeline"), axis("tensor")}, setting, options);
  plan.simulated_only = "a mesh of devices (strategy.mesh, strategy.shard)";
  note_ineffective(map, {"first_bucket"}, "with a mesh of devices", plan.ineffective_keys);
  if (!options.group.training.mixed)
    note_ineffective(map, {"fp32_gradients"}, "with precision: f32", plan.ineffective_keys);
  return plan;
}

}  // namespace

Strategy pipeline_strategy() {
  return {"pipeline",
          "stages of layers, with data and tensor parallelism inside each stage",
          "Y. Huang et al., GPipe, NeurIPS 2019; D. Narayanan et al., PipeDream, SOSP 2019; D. Narayanan et "
          "al., Efficient large-scale language model training on GPU clusters using Megatron-LM, SC 2021",
          read_pipeline,
          pipeline_keys(),
          "{kind: pipeline, stages: 2, micro_batches: 2}",
          "small-transformer"};
}

Strategy synchronous_over_mesh() {
  Strategy strategy = synchronous_strategy();
  strategy.plan = read_over_mesh;
  strategy.keys = joined_keys({strategy.keys, mesh_keys()});
  return strategy;
}

}  // namespace stepcast
