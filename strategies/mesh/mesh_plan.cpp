#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "strategies/mesh/mesh.hpp"
#include "strategies/mesh/offload.hpp"
#include "strategies/mesh/real_partition.hpp"
#include "strategies/mesh/spatial_axis.hpp"
#include "strategies/mesh/stage_plan.hpp"
#include "strategies/mesh/stages.hpp"
#include "strategies/mesh/zero_bubble.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {
namespace {

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
  if (twin == nullptr) places.own = places.common = groups.replicas = add_sums(mesh.tensor, mesh.copies());
  if (mesh.context > 1) groups.context = add_groups(mesh.tensor, mesh.context);
  if (mesh.expert > 1) groups.expert = add_groups(mesh.tensor, mesh.expert);
  if (mesh.expert > 1 && twin == nullptr)
    places.own = add_sums(mesh.tensor * mesh.expert, mesh.copies() / mesh.expert);
  if (options.division == LayerDivision::machines) places.common = add_sums(1, ranks);
  if (options.shards_parameters() && shards < mesh.copies()) {
    places.own = add_sums(mesh.tensor, shards);
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

/// Adds the sums of micro-batches' gradients to the backward passes of derived times; measured ones hold
/// them. PyTorch keeps the first gradient as the sum; each further one takes two reads and a write, unless
/// the products add to the sum themselves. Each micro-batch gets the mean time.
void add_sums_of_micro_batches(const KernelChoice& choice, const MeshOptions& options, Trace& times) {
  if (times.kind != Trace::Kind::derived || choice.adds_to_sums()) return;
  const double count = options.micro_batches_of_chunk(),
               ways = options.sums_every_micro_batch() ? options.shard_ways : 1;
  const double arrays = 3 * (count - 1) / count * (options.gradient / Bytes{4}) / ways;
  for (LayerTrace& layer : times.layers) {
    PassSamples& pass = layer.backward_weights.seconds.empty() ? layer.backward_data : layer.backward_weights;
    for (std::size_t i = 0; i < std::min(pass.seconds.size(), layer.update.seconds.size()); ++i)
      pass.seconds[i] += layer.update.seconds[i] * arrays / times.update_arrays;
  }
}

/// Makes every copy update its share only. The time to launch the kernels is not divided.
void share_updates(const Device& device, const std::vector<LayerCost>& costs, const MeshOptions& options,
                   const Model& part, Trace& times) {
  if (options.shard == MemoryOptions::Zero::none) return;
  for (std::size_t i = 0; i < times.layers.size(); ++i) {
    const bool experts = part.layers[i].kind == LayerKind::experts;
    const int ways = options.shard_ways / (experts ? options.mesh.expert : 1);
    const double launches = costs[i].update.kernels * device.kernel_gap().value;
    for (double& seconds : times.layers[i].update.seconds) {
      const double fixed = std::min(seconds, launches);
      seconds = fixed + (seconds - fixed) / ways;
    }
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

/// The layers as the devices of the tensor axis divide them.
ShardedModel divided_layers(const Model& model, const MeshOptions& options, const YamlValue& where) {
  const int ways = options.mesh.tensor;
  switch (options.division) {
    case LayerDivision::filters:
      refuse_if(filter_problem(model, ways), where);
      return shard_filters(model, ways);
    case LayerDivision::machines:
      refuse_if(partition_problem(model, ways), where);
      return partition(model, ways).sharded;
    case LayerDivision::blocks:
      break;
  }
  refuse_if(tensor_problem(model, ways), where);
  return shard_tensor(model, ways);
}

/// The part of a device: each axis changes the layers, and adds its exchanges.
ShardedModel divided_model(const Model& model, const MeshOptions& options, const MeshKeys& keys) {
  const Mesh& mesh = options.mesh;
  ShardedModel sharded = divided_layers(model, options, keys.tensor);
  if (options.sequence_parallel) {
    refuse_if(token_problem(model, sharded.part, mesh.tensor), keys.tensor);
    divide_tokens(model, mesh.tensor, sharded);
  }
  if (options.has_experts) {
    refuse_if(expert_problem(model, options.experts), keys.expert);
    share_experts(options.experts, sharded);
  }
  if (options.divides_positions()) {
    divide_positions(model, options, keys.context, sharded);
  } else if (mesh.context > 1) {
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
std::vector<int> placed(const Mesh& mesh, const std::vector<MeshAxis>& axes,
                        const std::vector<int>& devices) {
  const int sizes[] = {mesh.tensor, mesh.context, mesh.data, mesh.pipeline};
  int strides[] = {0, 0, 0, 0}, stride = 1;
  for (const MeshAxis axis : axes) {
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

/// Seconds of a step in which a program waits for the exchanges of a kind.
double mean_wait(const Records& records, const char* what) {
  const auto steps = records.find("step"), found = records.find(what);
  const double programs = steps == records.end() ? 1 : steps->second.size();
  if (found == records.end()) return 0;
  return std::accumulate(found->second.begin(), found->second.end(), 0.0) / programs;
}

/// The columns of the plan. @param work  see mean_work
std::function<Figures(const Records&, double)> mesh_figures(const MeshOptions& options, int ways,
                                                            double work) {
  const int stages = options.mesh.pipeline;
  return [=, groups = options.group_columns](const Records& records, double seconds) {
    Figures figures;
    if (groups)
      figures = {{"ways", ways},
                 {"halo_seconds", mean_wait(records, "halo")},
                 {"exchange_seconds", mean_wait(records, "exchange")},
                 {"statistics_seconds", mean_wait(records, "statistics")}};
    if (groups && stages == 1) return figures;
    figures.emplace_back("stages", stages);
    figures.emplace_back("idle_share", 1 - work / seconds);
    return figures;
  };
}

/// Begins the plan: the part of a device, and the samples that it has of each layer.
GroupPlan begin_mesh(const YamlMap& map, const MeshKeys& keys, const Setting& setting, MeshOptions& options) {
  Mesh& mesh = options.mesh;
  GroupPlan groups = begin_groups(setting, options.group, mesh.replica(), keys.pipeline);
  groups.sharded = divided_model(setting.model, options, keys);
  groups.kept = options.divides_positions() ? setting.model  // memory.split divides its samples
                : options.sequence_parallel ? kept_layers(groups.sharded, mesh.tensor)
                                            : groups.sharded.part;
  options.recomputed = recomputed_layers(groups.sharded.part, options.recompute);
  mesh.data = setting.workers() / mesh.replica();
  if (options.dual()) options.shard_ways *= 2;
  if (!options.axes.empty()) groups.plan.endpoints = placed(mesh, options.axes, setting.devices);
  set_samples(setting, mesh.data, groups);
  if (options.divides_positions()) divide_samples(options, groups);
  groups.ways = mesh.context * mesh.tensor * mesh.expert;
  groups.plan.communicators.clear();
  groups.captured_trace = map.maybe("part_trace");
  return groups;
}

/// The times of the passes of all stages. @param offloaded  see kept_of_blocks
Workload mesh_workload(const Setting& setting, const MeshOptions& options, const Trace& times,
                       const std::vector<LayerCost>& costs, const GroupPlan& groups) {
  Workload workload =
      segmented_workload(times, costs, setting.device, groups.calls, options.group.halo_overlap);
  scale(workload, options.group.training.compute_factor);
  if (options.splits_backward() || has_shares(options.recomputed))
    add_shares(options.recomputed, times.layers.size(), workload);
  workload.input = groups.micro_batch * setting.sample_size / options.mesh.context;
  return workload;
}

/// True if an exchange of a layer can overlap with work.
bool can_overlap(const LayerCalls& calls) {
  return calls.forward_halo.collective.exists() || calls.backward_halo.collective.exists() ||
         !calls.after_backward.empty();
}

bool has_exchanges(const LayerCalls& calls) {
  return can_overlap(calls) || !calls.before_forward.empty() || !calls.after_forward.empty() ||
         !calls.before_backward.empty();
}

/// Notes which keys of communication have no effect on the plan of several devices.
void note_ineffective_exchanges(const YamlMap& map, const MeshOptions& options, const GroupPlan& groups,
                                Plan& plan) {
  IneffectiveKeys& found = plan.ineffective_keys;
  const bool any = std::ranges::any_of(groups.calls, can_overlap);
  if (std::ranges::none_of(groups.calls, has_exchanges))
    note_ineffective(map, {"exchange_overhead"}, "where layers exchange nothing", found);
  if (!any) note_ineffective(map, {"halo_overlap"}, "where no exchange can overlap with work", found);
  const bool sums = std::ranges::any_of(plan.collectives, [&](const Collective& one) {
    return one.buffer.array == Array::gradients && communicator_of(plan, one).size > 1;
  });
  if (!sums)
    note_ineffective(map, {"bucket", "overlap"}, "where no gradients are summed between workers", found);
  const bool overlaps = options.group.overlap || options.shards_parameters();  // sums or gathers
  if (!(overlaps && sums) && !(options.group.halo_overlap && any))
    note_ineffective(map, {"compute_slowdown"}, "where no communication overlaps with compute", found);
}

/// Notes which keys have no effect on the plan, whose collectives are complete.
void note_ineffective_mesh(const YamlMap& map, const MeshOptions& options, const GroupPlan& groups,
                           Plan& plan) {
  note_ineffective_communication(map, options.scatters, true, plan);
  if (plan.devices > 1) note_ineffective_exchanges(map, options, groups, plan);
  if (options.recompute.kind != Recompute::Kind::full)
    note_ineffective(map, {"early_stop"}, "without recompute: full", plan.ineffective_keys);
  if (!options.recompute.any())
    note_ineffective(map, {"synchronize_checkpoints"}, "without recompute", plan.ineffective_keys);
  if (options.mesh.copies() == 1)
    note_ineffective(map, {"zero", "stage", "shard", "fp32_gradients"}, "with one replica",
                     plan.ineffective_keys);
}

}  // namespace

Plan plan_mesh(const YamlMap& map, const MeshKeys& keys, const Setting& setting, MeshOptions options) {
  GroupPlan groups = begin_mesh(map, keys, setting, options);
  Trace times = part_times(setting, groups);
  const std::vector<LayerCost> costs = layer_costs(groups.sharded.part, setting.device.choice());
  add_sums_of_micro_batches(setting.device.choice(), options, times);
  share_updates(setting.device, costs, options, groups.sharded.part, times);
  const Stages starts = first_layers_of_runs(map, keys.pipeline, setting, times, options);
  const std::vector<Bytes> offloaded = kept_of_blocks(options, groups);
  const Memory fullest = add_stages(setting, options, starts, offloaded, groups);
  Workload workload = mesh_workload(setting, options, times, costs, groups);
  const double work = mean_work(workload, times.layers.size(), options);
  if (!offloaded.empty()) wait_for_copies(groups.sharded.part, offloaded, options.host_link, workload);
  if (options.splits_backward()) split_weights(groups.calls, workload);
  Plan plan = std::move(groups.plan);
  plan.partition = real_partition(setting.model, options, starts, groups);
  plan.workloads.push_back(std::move(workload));
  // Stages count the sum over micro-batches as one gradient.
  const bool stages = plan.partition.form == ModelPartition::Form::stages;
  plan.summed_gradients = options.mesh.data * (stages ? 1 : options.group.micro_batches);
  finish_group_plan(setting, groups, times, fullest, plan);
  note_ineffective_mesh(map, options, groups, plan);
  plan.figures = mesh_figures(options, groups.ways, work);
  return plan;
}

}  // namespace stepcast
