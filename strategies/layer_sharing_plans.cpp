#include "models/shared_part.hpp"
#include "strategies/group_plan.hpp"
#include "strategies/shared_strategies.hpp"

namespace stepcast {
namespace {

int read_ways(const YamlMap& map, const char* key) {
  return static_cast<int>(map.at(key, "devices that share a replica, an integer >= 1").integer(1, 100'000));
}

YamlMap layer_keys(const YamlValue& value) {
  return value.map(joined_keys({group_keys(), {"ways", "cut_trace"}}));
}

/// Why kernels cannot do this.
std::string simulated_only(const Model& model, const ShardedModel& sharded, const GroupOptions& options) {
  if (options.training.mixed) return "activations of 2 bytes";
  if (options.recompute && has_dropout(model)) return kDropsOthers;
  return part_problem(sharded);
}

/// Filters and tensor blocks: the devices of a group work on the same samples.
Plan share_layers(const Setting& setting, const YamlMap& map, ShardedModel (*shard)(const Model&, int),
                  std::string (*problem)(const Model&, int)) {
  const YamlValue where = map.at("ways", "devices that share a replica, an integer >= 1");
  const int ways = read_ways(map, "ways");
  GroupPlan groups = begin_groups(setting, read_group_options(map), ways, where);
  refuse_if(problem(setting.model, ways), where);
  set_samples(setting, setting.workers() / ways, groups);
  groups.sharded = shard(setting.model, ways);
  groups.cut_trace = map.maybe("cut_trace");
  add_exchanges({0, static_cast<int>(setting.model.layers.size())}, groups);
  const Model part = groups.sharded.part;
  const int summed = setting.workers() / ways * groups.options.micro_batches;
  Plan plan = finish(setting, std::move(groups), part);
  plan.summed_gradients = summed;
  return plan;
}

Experts read_experts(const YamlMap& map) {
  Experts experts;
  experts.ways = read_ways(map, "ways");
  experts.count = static_cast<int>(map.at("experts", "experts a layer").integer(1, 1'000'000));
  if (const auto top = map.maybe("top")) experts.top = static_cast<int>(top->integer(1, 1000));
  if (const auto factor = map.maybe("capacity_factor")) experts.capacity_factor = factor->number(1, 100);
  if (const auto every = map.maybe("every")) experts.every = static_cast<int>(every->integer(1, 10'000));
  return experts;
}

}  // namespace

Plan read_filter_parallel(const YamlValue& value, const Setting& setting) {
  return share_layers(setting, layer_keys(value), shard_filters, filter_problem);
}

Plan read_tensor(const YamlValue& value, const Setting& setting) {
  Plan plan = share_layers(setting, layer_keys(value), shard_tensor, tensor_problem);
  plan.sharing = tensor_sharing(value, setting.model, plan.sharing.micro_batch);
  return plan;
}

NetworkSharing tensor_sharing(const YamlValue& value, const Model& model, std::int64_t batch) {
  const YamlMap map = layer_keys(value);
  NetworkSharing sharing;
  sharing.form = NetworkSharing::Form::blocks;
  sharing.ways = read_ways(map, "ways");
  const GroupOptions options = read_group_options(map);
  sharing.micro_batch = batch;
  sharing.micro_batches = options.micro_batches;
  sharing.simulated_only = tensor_problem(model, sharing.ways);
  if (sharing.simulated_only.empty())
    sharing.simulated_only = simulated_only(model, shard_tensor(model, sharing.ways), options);
  return sharing;
}

Plan read_mixture_of_experts(const YamlValue& value, const Setting& setting) {
  const YamlMap map =
      value.map(joined_keys({group_keys(), {"ways", "experts", "top", "capacity_factor", "every"}}));
  const Experts experts = read_experts(map);
  const YamlValue where = map.at("experts");
  GroupPlan groups = begin_groups(setting, read_group_options(map), experts.ways, map.at("ways"));
  refuse_if(expert_problem(setting.model, experts), where);
  set_samples(setting, setting.workers(), groups);  // each device has samples of its own
  groups.sharded = shard_experts(setting.model, experts);
  add_exchanges({0, static_cast<int>(setting.model.layers.size())}, groups);
  const Model part = groups.sharded.part;
  return finish(setting, std::move(groups), part);
}

Plan read_model_parallel(const YamlValue& value, const Setting& setting) {
  const YamlMap map = value.map(joined_keys({group_keys(), {"machines", "cut_trace"}}));
  const YamlValue where = map.at("machines", "machines that share a replica, an integer >= 1");
  const int machines = read_ways(map, "machines");
  GroupPlan groups = begin_groups(setting, read_group_options(map), machines, where);
  refuse_if(partition_problem(setting.model, machines), where);
  set_samples(setting, setting.workers() / machines, groups);
  PartitionedModel partitioned = partition(setting.model, machines);
  groups.sharded = std::move(partitioned.sharded);
  groups.cut_trace = map.maybe("cut_trace");
  add_exchanges({0, static_cast<int>(setting.model.layers.size())}, groups);
  if (machines > 1) add_halos(setting, partitioned.cut, groups);
  const Model part = groups.sharded.part;
  return finish(setting, std::move(groups), part);
}

}  // namespace stepcast
