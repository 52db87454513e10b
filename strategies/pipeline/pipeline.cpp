#include <fmt/format.h>

#include <algorithm>

#include "models/partition/tensor_shard.hpp"
#include "strategies/data_parallel/zero.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/pipeline/pipeline_stage.hpp"
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
ModelPartition pipeline_partition(const Model& model, const PipelineOptions& options, const Stages& starts,
                                  const GroupPlan& groups) {
  ModelPartition partition;
  partition.form = ModelPartition::Form::stages;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) partition.stages.push_back({starts[i], starts[i + 1]});
  partition.ways = options.tensor;
  partition.micro_batch = groups.micro_batch;
  partition.micro_batches = options.group.micro_batches;
  partition.sums_every_micro_batch = options.zero == 2;
  for (int stage = 0; options.group.recompute && stage < options.stages; ++stage)
    partition.recomputed.push_back(
        pipeline_schedule(options.order, stage, options.stages, options.group.micro_batches, options.chunks));
  if (options.tensor > 1) partition.simulated_only = tensor_stage_problem(model, groups.sharded, starts);
  if (options.group.recompute && has_dropout(model)) partition.simulated_only = kRecomputedDropout;
  if (options.group.training.mixed) partition.simulated_only = "activations of 2 bytes";
  return partition;
}

/// Adds the communicators of stage `stage`: its tensor groups, and the groups of ranks in the same place of
/// each replica. The ranks of a stage are ordered by replica. Sets groups.group and groups.replicas.
void add_communicators(const Setting& setting, int stage, int ranks, int tensor, GroupPlan& groups) {
  Plan& plan = groups.plan;
  std::vector<RankId> in_order, by_place;
  for (int i = 0; i < ranks; ++i) in_order.emplace_back(stage * ranks + i);
  for (int place = 0; place < tensor; ++place) {
    for (int i = place; i < ranks; i += tensor) by_place.emplace_back(stage * ranks + i);
  }
  groups.group = add(plan, communicator(setting.platform, plan.endpoints, in_order, tensor));
  groups.replicas = add(plan, communicator(setting.platform, plan.endpoints, by_place, ranks / tensor));
  apply(groups.options.communication, plan.communicators.back());
}

/// Memory of a stage at the moment with most micro-batches in flight. It holds the error signals of one chunk
/// at a time.
Memory stage_memory(const Setting& setting, const PipelineOptions& options, const PipelineStage& stage,
                    const GroupPlan& groups) {
  MemoryOptions memory = groups.memory;
  memory.zero_ways = setting.workers() / options.stages / options.tensor;
  if (memory.zero_ways > 1) memory.zero = static_cast<MemoryOptions::Zero>(options.zero);
  const std::vector<int> held = most_in_flight(stage.actions, options.chunks);
  Memory sum;
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    const LayerRange segments = stage.chunks[i].segments;
    memory.in_flight = held[i];
    const Memory chunk = training_memory(stage_model(groups.sharded.part, segments.first / kSegmentsPerLayer,
                                                     segments.last / kSegmentsPerLayer),
                                         memory);
    sum.weights += chunk.weights;
    sum.gradients += chunk.gradients;
    sum.optimizer_state += chunk.optimizer_state;
    sum.activations += chunk.activations;
    sum.input += chunk.input;
    sum.error_signals = std::max(sum.error_signals, chunk.error_signals);
    sum.workspace = std::max(sum.workspace, chunk.workspace);
    sum.allocator += chunk.allocator;
  }
  return sum;
}

/// Seconds of all passes of one step, for the mean stage.
double mean_work(const Workload& workload, const PipelineOptions& options) {
  double sum = 0;
  for (const LayerSeconds& segment : workload.median) {
    const double forward = (options.group.recompute ? 2 : 1) * segment.forward;
    sum += options.group.micro_batches * (forward + segment.backward) + segment.update;
  }
  return sum / options.stages;
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

Keys make_keys() {
  Keys keys = joined_keys(
      {group_keys(),
       {{"stages", "integer", "1 to 1e5", "required", "stages of layers"},
        renamed({"split_points", "list of layer names", "", "the fastest division",
                 "names of the first layers of stages 2, 3, ..."},
                "cuts"),
        {"split", "name", "time, blocks", "time",
         "how layers are divided without split_points: into stages that take the same time, or that have as "
         "many blocks"},
        {"micro_batches", "integer", "1 to 1e5", "1", "micro-batches in a step"},
        {"schedule", "name", "naive, gpipe, 1f1b, interleaved", "1f1b", "order of the passes of a stage"},
        {"chunks", "integer", "2 to 1000", "required with interleaved",
         "interleaved: number of groups of consecutive layers in each stage"},
        {"tensor", "integer", "1 to 1e5", "1", "devices that share the layers of a stage"},
        {"zero", "integer", "0 to 2", "0", "ZeRO stage over the replicas of a stage"},
        part_trace_key()}});
  // The reader accepts this key of other strategies to say which key to use.
  std::ranges::find(keys, "accumulation", &Key::name)->meaning = "not valid: give micro_batches";
  return keys;
}

const Keys& pipeline_keys() {
  static const Keys keys = make_keys();
  return keys;
}

Plan read_pipeline(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, pipeline_keys());
  const PipelineOptions options = read_pipeline_options(map);
  if (map.has("accumulation"))
    map.at("accumulation").refuse("not valid with kind: pipeline; give micro_batches");
  GroupPlan groups = begin_groups(setting, options.group, options.stages * options.tensor, map.at("stages"));
  if (options.tensor > 1) refuse_if(tensor_problem(setting.model, options.tensor), map.at("tensor"));
  const int ranks = setting.workers() / options.stages;  // of a stage
  set_samples(setting, ranks / options.tensor, groups);
  groups.ways = options.tensor;
  groups.plan.communicators.clear();
  groups.sharded = shard_tensor(setting.model, options.tensor);
  groups.captured_trace = map.maybe("part_trace");

  Trace times = part_times(setting, groups);
  const std::vector<LayerCost> costs = layer_costs(groups.sharded.part, setting.device.choice());
  if (options.zero > 0) share_updates(setting.device, costs, ranks / options.tensor, times);
  const Stages starts = first_layers_of_runs(map, setting, times, options.stages * options.chunks);
  Memory fullest;
  for (int number = 0; number < options.stages; ++number) {
    add_communicators(setting, number, ranks, options.tensor, groups);
    PipelineStage stage = make_stage(setting, options, number, starts, groups);
    const Memory memory = stage_memory(setting, options, stage, groups);
    if (memory.total() > fullest.total()) fullest = memory;
    add_role(number, ranks, std::move(stage), groups.plan);
  }
  if (options.chunks > 1 && options.stages > 2) add_channels(options.stages - 1, 0, groups.plan);
  Workload workload =
      segmented_workload(times, costs, setting.device, groups.calls, options.group.halo_overlap);
  scale(workload, options.group.training.compute_factor);
  workload.input = static_cast<double>(groups.micro_batch) * setting.sample_size;
  const double work = mean_work(workload, options);
  Plan plan = std::move(groups.plan);
  plan.partition = pipeline_partition(setting.model, options, starts, groups);
  plan.workloads.push_back(std::move(workload));
  plan.summed_gradients = ranks / options.tensor;  // the sum over micro-batches counts as one gradient
  finish_group_plan(setting, groups, times, fullest, plan);
  note_ineffective_group(groups, options.zero > 0 ? fmt::format("with zero: {}", options.zero) : "", plan);
  if (ranks == options.tensor) note_ineffective(map, {"zero"}, "with one replica", plan.ineffective_keys);
  plan.figures = [work, stages = options.stages](const Records&, double seconds) {
    return Figures{{"stages", stages}, {"idle_share", 1 - work / seconds}};
  };
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

}  // namespace stepcast
