#include <fmt/format.h>

#include <algorithm>

#include "core/fields.hpp"
#include "models/partition/tensor_shard.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/options/strategy.hpp"

namespace stepcast {
namespace {

/// How many devices share a replica: `ways`, or `machines` of DistBelief's models.
struct Ways {
  int ways = 1;
};

Fields<Ways> ways_named(std::string_view name, const std::string& meaning) {
  return {field(name, &Ways::ways, integer(1, 100'000), required(meaning + ", an integer >= 1"),
                lasting(meaning))};
}

const Fields<Ways>& way_fields() {
  static const Fields<Ways> fields = ways_named("ways", "devices that share a replica");
  return fields;
}

const Fields<Ways>& machine_fields() {
  static const Fields<Ways> fields = ways_named("machines", "machines that share a replica");
  return fields;
}

int read_ways(const YamlMap& map, const Fields<Ways>& fields = way_fields()) {
  Ways ways;
  read_fields(map, fields, ways);
  return ways.ways;
}

const Fields<Experts>& expert_fields() {
  static const Fields<Experts> fields{
      field("experts", &Experts::count, integer(1, 1'000'000), otherwise("required, or the network's"),
            "experts per layer; a multiple of ways"),
      field("top", &Experts::top, integer(1, 1000), "experts that each token visits"),
      field("capacity_factor", &Experts::capacity_factor, number(1, 100),
            "tokens that an expert accepts, divided by its even share of all tokens"),
      field("every", &Experts::every, integer(1, 10'000), "one of this many consecutive blocks has experts")};
  return fields;
}

const Keys& layer_keys() {
  static const Keys keys = joined_keys({group_keys(), way_fields().keys(), {part_trace_key()}});
  return keys;
}

const Keys& expert_keys() {
  static const Keys keys = joined_keys({group_keys(), way_fields().keys(), expert_fields().keys()});
  return keys;
}

const Keys& machine_keys() {
  static const Keys keys = joined_keys({group_keys(), machine_fields().keys(), {part_trace_key()}});
  return keys;
}

/// @returns reason why kernels cannot compute this; empty where they can
std::string kernel_limit(const Model& model, const GroupOptions& options) {
  if (options.training.mixed) return "activations of 2 bytes";
  return options.recompute && has_dropout(model) ? kRecomputedDropout : "";
}

/// Plan of filter and tensor parallelism: the devices of a group work on the same samples.
Plan share_layers(const Setting& setting, const YamlMap& map, ShardedModel (*shard)(const Model&, int),
                  std::string (*problem)(const Model&, int)) {
  const int ways = read_ways(map);
  const YamlValue where = map.at("ways");
  GroupPlan groups = begin_groups(setting, read_group_options(map), ways, where);
  refuse_if(problem(setting.model, ways), where);
  set_samples(setting, setting.workers() / ways, groups);
  groups.sharded = shard(setting.model, ways);
  groups.captured_trace = map.maybe("part_trace");
  add_exchanges({0, static_cast<int>(setting.model.layers.size())}, groups);
  allow_one_network(groups, setting.model, "", groups.partition);
  const Model part = groups.sharded.part;
  const int summed = setting.workers() / ways * groups.options.micro_batches;
  Plan plan = finish(setting, std::move(groups), part);
  plan.summed_gradients = summed;
  return plan;
}

/// The experts of a network that has layers of them, as many in each.
void take_own_experts(const YamlMap& map, const Model& model, const std::vector<std::size_t>& layers,
                      Experts& experts) {
  for (const char* key : {"experts", "top", "every"}) {
    if (map.has(key)) map.at(key).refuse("not valid: the network has experts of its own");
  }
  experts.count = model.layers[layers.front()].experts;
  experts.top = model.layers[layers.front()].top;
  for (const std::size_t layer : layers) {
    if (model.layers[layer].experts != experts.count)
      map.value().refuse("the layers of the network have different numbers of experts");
  }
}

Experts read_experts(const YamlMap& map, const Model& model) {
  Experts experts;
  experts.ways = read_ways(map);
  read_fields(map, expert_fields(), experts);
  experts.pads = map.has("capacity_factor");
  const std::vector<std::size_t> own = expert_layers(model);
  if (own.empty()) {
    map.at("experts", "experts a layer");
  } else {
    take_own_experts(map, model, own, experts);
  }
  return experts;
}

Plan read_filter_parallel(const YamlValue& value, const Setting& setting) {
  Plan plan = share_layers(setting, read_map(value, layer_keys()), shard_filters, filter_problem);
  const ModelPartition partition = filter_partition(value, setting.model, plan.partition.micro_batch);
  if (partition.simulated_only.empty()) plan.partition = partition;
  plan.partition.simulated_only = partition.simulated_only;
  return plan;
}

/// The partition by `ways`, of which it is not known yet whether kernels can compute it.
ModelPartition partition_by_ways(ModelPartition::Form form, int ways, std::int64_t batch,
                                 const GroupOptions& options) {
  ModelPartition partition;
  partition.form = form;
  partition.ways = ways;
  partition.micro_batch = batch;
  partition.micro_batches = options.micro_batches;
  return partition;
}

}  // namespace

ModelPartition filter_partition(const YamlValue& value, const Model& model, std::int64_t batch) {
  const YamlMap map = read_map(value, layer_keys());
  const GroupOptions options = read_group_options(map);
  const int ways = read_ways(map);
  ModelPartition partition = partition_by_ways(ModelPartition::Form::filters, ways, batch, options);
  partition.simulated_only = filter_problem(model, ways);
  if (partition.simulated_only.empty()) partition.simulated_only = kernel_limit(model, options);
  if (partition.simulated_only.empty()) partition.simulated_only = filter_part_problem(model, ways);
  return partition;
}

ModelPartition tensor_partition(const YamlValue& value, const Model& model, std::int64_t batch) {
  const YamlMap map = read_map(value, layer_keys());
  const GroupOptions options = read_group_options(map);
  ModelPartition partition = partition_by_ways(ModelPartition::Form::blocks, read_ways(map), batch, options);
  partition.simulated_only = tensor_problem(model, partition.ways);
  if (partition.simulated_only.empty()) partition.simulated_only = kernel_limit(model, options);
  if (partition.simulated_only.empty())
    partition.simulated_only = part_problem(model, shard_tensor(model, partition.ways));
  return partition;
}

ModelPartition machine_partition(const Model& model, int machines, const GroupOptions& options,
                                 std::int64_t batch) {
  ModelPartition partition = partition_by_ways(ModelPartition::Form::slices, machines, batch, options);
  partition.spatial = stepcast::partition(model, machines).spatial;
  partition.spatial.separate_border = options.halo_overlap && partition.spatial.whole_from > 0;
  partition.simulated_only = statistics_problem(model, 1, machines);
  if (partition.simulated_only.empty()) partition.simulated_only = kernel_limit(model, options);
  if (partition.simulated_only.empty()) partition.simulated_only = machine_part_problem(model, machines);
  return partition;
}

namespace {

Plan read_tensor(const YamlValue& value, const Setting& setting) {
  Plan plan = share_layers(setting, read_map(value, layer_keys()), shard_tensor, tensor_problem);
  plan.partition = tensor_partition(value, setting.model, plan.partition.micro_batch);
  return plan;
}

/// The partition of a network with experts of its own; others are simulated only.
ModelPartition expert_partition(const Model& model, const Experts& experts, const GroupOptions& options) {
  ModelPartition partition;
  partition.form = ModelPartition::Form::stages;
  partition.stages = {{0, static_cast<int>(model.layers.size())}};
  partition.expert_ways = experts.ways;
  partition.simulated_only = kernel_limit(model, options);
  if (experts.pads) partition.simulated_only = "capacity_factor";
  if (options.recompute) partition.simulated_only = "recompute; give mesh: {expert: N}";
  return partition;
}

Plan read_mixture_of_experts(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, expert_keys());
  const Experts experts = read_experts(map, setting.model);
  const YamlValue where = map.at(map.has("experts") ? "experts" : "ways");
  GroupPlan groups = begin_groups(setting, read_group_options(map), experts.ways, map.at("ways"));
  refuse_if(expert_problem(setting.model, experts), where);
  set_samples(setting, setting.workers(), groups);  // each device has its own samples
  groups.sharded = shard_experts(setting.model, experts);
  add_exchanges({0, static_cast<int>(setting.model.layers.size())}, groups);
  if (expert_layers(setting.model).empty())
    groups.partition.simulated_only = "experts in place of layers that the network has";
  else
    groups.partition = expert_partition(setting.model, experts, groups.options);
  const Model part = groups.sharded.part;
  Plan plan = finish(setting, std::move(groups), part);
  plan.summed_gradients = setting.workers();
  return plan;
}

Plan read_model_parallel(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, machine_keys());
  const int machines = read_ways(map, machine_fields());
  const YamlValue where = map.at("machines");
  GroupPlan groups = begin_groups(setting, read_group_options(map), machines, where);
  refuse_if(partition_problem(setting.model, machines), where);
  set_samples(setting, setting.workers() / machines, groups);
  PartitionedModel partitioned = partition(setting.model, machines);
  groups.sharded = std::move(partitioned.sharded);
  groups.captured_trace = map.maybe("part_trace");
  add_exchanges({0, static_cast<int>(setting.model.layers.size())}, groups);
  if (machines > 1) add_halos(setting, partitioned.spatial, groups);
  allow_one_network(groups, setting.model, statistics_problem(setting.model, 1, machines), groups.partition);
  const Model part = groups.sharded.part;
  const int summed = setting.workers() / machines * groups.options.micro_batches;
  const GroupOptions options = groups.options;
  Plan plan = finish(setting, std::move(groups), part);
  plan.summed_gradients = summed;
  const ModelPartition slices =
      machine_partition(setting.model, machines, options, plan.partition.micro_batch);
  if (slices.simulated_only.empty()) plan.partition = slices;
  plan.partition.simulated_only = slices.simulated_only;
  return plan;
}

}  // namespace

Strategy filter_parallel_strategy() {
  return {"filter_parallel",
          "filters of each layer are partitioned over the devices of a group",
          "A. Krizhevsky, One weird trick for parallelizing convolutional neural networks, arXiv:1404.5997; "
          "N. Dryden et al., Channel and filter parallelism for large-scale CNN training, SC 2019",
          read_filter_parallel,
          layer_keys(),
          "{kind: filter_parallel, ways: 2}",
          "small-cnn"};
}

Strategy tensor_strategy() {
  return {"tensor",
          "transformer blocks are partitioned over the devices of a group, by heads and hidden units",
          "M. Shoeybi et al., Megatron-LM: training multi-billion parameter language models using model "
          "parallelism, arXiv:1909.08053",
          read_tensor,
          layer_keys(),
          "{kind: tensor, ways: 2}",
          "small-transformer",
          {"megatron"}};
}

Strategy mixture_of_experts_strategy() {
  return {"mixture_of_experts",
          "data parallelism with experts that are partitioned over the devices of a group",
          "D. Lepikhin et al., GShard: scaling giant models with conditional computation and automatic "
          "sharding, ICLR 2021",
          read_mixture_of_experts,
          expert_keys(),
          "{kind: mixture_of_experts, ways: 2, experts: 4}",
          "small-transformer",
          {"moe"}};
}

Strategy model_parallel_strategy() {
  return {"model_parallel",
          "a network is partitioned over machines (DistBelief)",
          "J. Dean et al., Large scale distributed deep networks, NIPS 2012",
          read_model_parallel,
          machine_keys(),
          "{kind: model_parallel, machines: 2}",
          "small-cnn"};
}

}  // namespace stepcast
