#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "strategies/communicator.hpp"
#include "strategies/pipeline_chunks.hpp"
#include "strategies/pipeline_options.hpp"
#include "strategies/zero.hpp"

namespace stepcast {
namespace {

/// Communicators of stage `stage`, whose ranks are replica after replica: tensor groups and, place by place,
/// the replicas. Sets groups.group and groups.replicas.
void add_communicators(const Setting& setting, int stage, int ranks, int tensor, GroupPlan& groups) {
  Plan& plan = groups.plan;
  std::vector<int> in_order, by_place;
  for (int i = 0; i < ranks; ++i) in_order.push_back(stage * ranks + i);
  for (int place = 0; place < tensor; ++place) {
    for (int i = place; i < ranks; i += tensor) by_place.push_back(stage * ranks + i);
  }
  groups.group = static_cast<int>(plan.communicators.size());
  plan.communicators.push_back(communicator(setting.platform, plan.endpoints, in_order, tensor));
  groups.replicas = static_cast<int>(plan.communicators.size());
  plan.communicators.push_back(communicator(setting.platform, plan.endpoints, by_place, ranks / tensor));
  apply(groups.options.communication, plan.communicators.back());
}

/// What a stage holds when most of its micro-batches are under way; error signals are those of one chunk at a
/// time.
Memory stage_memory(const Setting& setting, const PipelineOptions& options, const PipelineStage& stage,
                    const GroupPlan& groups) {
  MemoryOptions memory = groups.memory;
  if (options.zero > 0) memory.zero = static_cast<MemoryOptions::Zero>(options.zero);
  memory.zero_ways = setting.workers() / options.stages / options.tensor;
  const std::vector<int> held = most_in_flight(stage.turns, options.chunks);
  Memory sum;
  for (std::size_t i = 0; i < stage.chunks.size(); ++i) {
    const LayerRange pieces = stage.chunks[i].pieces;
    memory.in_flight = held[i];
    const Memory chunk = training_memory(
        stage_model(groups.sharded.part, pieces.first / kPieces, pieces.last / kPieces), memory);
    sum.weights += chunk.weights;
    sum.gradients += chunk.gradients;
    sum.optimizer_state += chunk.optimizer_state;
    sum.activations += chunk.activations;
    sum.input += chunk.input;
    sum.error_signals = std::max(sum.error_signals, chunk.error_signals);
    sum.workspace = chunk.workspace;
  }
  return sum;
}

/// Seconds of all passes of one step, of the mean stage.
double mean_work(const Workload& workload, const PipelineOptions& options) {
  double sum = 0;
  for (const LayerSeconds& piece : workload.median) {
    const double forward = (options.group.recompute ? 2 : 1) * piece.forward;
    sum += options.group.micro_batches * (forward + piece.backward) + piece.update;
  }
  return sum / options.stages;
}

/// Every replica updates its share.
void share_updates(const Device& device, const std::vector<LayerCost>& costs, int replicas, Trace& times) {
  for (std::size_t i = 0; i < times.layers.size(); ++i) {
    const double launches = costs[i].update.kernels * device.launch_overhead.value;
    for (double& seconds : times.layers[i].update.seconds)
      seconds = shared_update(seconds, launches, replicas);
  }
}

void add_channels(int from, int to, Plan& plan) {
  plan.channels.emplace_back(from, to);
  plan.channels.emplace_back(to, from);
}

void add_role(int number, int ranks, PipelineStage stage, Plan& plan) {
  plan.roles.push_back({fmt::format("stage {}", number), number * ranks, ranks, 0, true,
                        [stage = std::make_shared<const PipelineStage>(std::move(stage))](Worker& worker) {
                          return pipeline_stage(worker, *stage);
                        }});
  if (number > 0) add_channels(number - 1, number, plan);
}

}  // namespace

Plan read_pipeline(const YamlValue& value, const Setting& setting) {
  const YamlMap map = value.map(joined_keys(
      {group_keys(),
       {"stages", "cuts", "micro_batches", "schedule", "chunks", "tensor", "zero", "cut_trace"}}));
  const PipelineOptions options = read_pipeline_options(map);
  if (map.has("accumulation")) map.at("accumulation").refuse("a pipeline has micro_batches instead");
  GroupPlan groups = begin_groups(setting, options.group, options.stages * options.tensor, map.at("stages"));
  if (options.tensor > 1) refuse_if(tensor_problem(setting.model, options.tensor), map.at("tensor"));
  const int ranks = setting.workers() / options.stages;  // of a stage
  set_samples(setting, ranks / options.tensor, groups);
  groups.ways = options.tensor;
  groups.plan.communicators.clear();
  groups.sharded = shard_tensor(setting.model, options.tensor);
  groups.cut_trace = map.maybe("cut_trace");

  Trace times = part_times(setting, groups);
  const std::vector<LayerCost> costs = layer_costs(groups.sharded.part);
  if (options.zero > 0) share_updates(setting.device, costs, ranks / options.tensor, times);
  const Stages cuts = cut_into_runs(map, setting, times, options.stages * options.chunks);
  Memory fullest;
  for (int number = 0; number < options.stages; ++number) {
    add_communicators(setting, number, ranks, options.tensor, groups);
    PipelineStage stage = make_stage(setting, options, number, cuts, groups);
    const Memory memory = stage_memory(setting, options, stage, groups);
    if (memory.total() > fullest.total()) fullest = memory;
    add_role(number, ranks, std::move(stage), groups.plan);
  }
  if (options.chunks > 1 && options.stages > 2) add_channels(options.stages - 1, 0, groups.plan);
  Workload workload = pieces_workload(times, costs, setting.device, groups.calls, options.group.halo_overlap);
  scale(workload, options.group.training.compute_factor);
  workload.input = static_cast<double>(groups.micro_batch) * setting.sample_size;
  const double work = mean_work(workload, options);
  Plan plan = std::move(groups.plan);
  plan.sharing = pipeline_sharing(setting.model, options, cuts, groups);
  plan.workloads.push_back(std::move(workload));
  plan.summed_gradients = ranks / options.tensor;  // those of micro-batches make up their mean
  set_verdict(setting, groups, times, fullest, plan);
  note_idle_group(groups, options.zero > 0 ? fmt::format("with zero: {}", options.zero) : "", plan);
  if (ranks == options.tensor) note_idle(map, {"zero"}, "with one replica", plan.idle_keys);
  plan.figures = [work, stages = options.stages](const Records&, double seconds) {
    return Figures{{"stages", stages}, {"idle_share", 1 - work / seconds}};
  };
  return plan;
}

}  // namespace stepcast
