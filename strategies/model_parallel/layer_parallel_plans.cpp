#include <fmt/format.h>

#include <algorithm>

#include "models/partition/spatial_shard.hpp"
#include "models/partition/tensor_shard.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/options/strategy.hpp"

namespace stepcast {
namespace {

int read_ways(const YamlMap& map, const char* key) {
  return static_cast<int>(map.at(key, "devices that share a replica, an integer >= 1").integer(1, 100'000));
}

const Keys& layer_keys() {
  static const Keys keys = joined_keys({group_keys(), {ways_key(), part_trace_key()}});
  return keys;
}

const Keys& expert_keys() {
  static const Keys keys = joined_keys(
      {group_keys(),
       {ways_key(),
        {"experts", "integer", "1 to 1e6", "required, or the network's",
         "experts per layer; a multiple of ways"},
        {"top", "integer", "1 to 1000", "2", "experts that each token visits"},
        {"capacity_factor", "number", "1 to 100", "1",
         "tokens that an expert accepts, divided by its even share of all tokens"},
        {"every", "integer", "1 to 10000", "2", "one of this many consecutive blocks has experts"}}});
  return keys;
}

const Keys& machine_keys() {
  static const Keys keys =
      joined_keys({group_keys(),
                   {{"machines", "integer", "1 to 100000", "required", "machines that share a replica"},
                    part_trace_key()}});
  return keys;
}

/// @returns reason why kernels cannot compute this; empty where they can
std::string kernel_limit(const Model& model, const GroupOptions& options) {
  if (options.training.mixed) return "activations of 2 bytes";
  return options.recompute && has_dropout(model) ? kRecomputedDropout : "";
}

/// @param over  ranks whose samples the statistics of batch norm cover
/// @returns reason why batch norm in a group of `ways` differs from that of one rank; empty if it does not
std::string statistics_problem(const Model& model, int over, int ways) {
  if (over == ways || std::ranges::count(model.layers, LayerKind::batch_norm, &Layer::kind) == 0) return "";
  return "batch-norm statistics of other samples than those of the group";
}

/// Plan of filter and tensor parallelism: the devices of a group work on the same samples.
Plan share_layers(const Setting& setting, const YamlMap& map, ShardedModel (*shard)(const Model&, int),
                  std::string (*problem)(const Model&, int)) {
  const YamlValue where = map.at("ways", "devices that share a replica, an integer >= 1");
  const int ways = read_ways(map, "ways");
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
Experts own_experts(const YamlMap& map, const Model& model, const std::vector<std::size_t>& layers) {
  for (const char* key : {"experts", "top", "every"}) {
    if (map.has(key)) map.at(key).refuse("not valid: the network has experts of its own");
  }
  Experts experts;
  experts.count = static_cast<int>(model.layers[layers.front()].experts);
  experts.top = static_cast<int>(model.layers[layers.front()].top);
  for (const std::size_t layer : layers) {
    if (model.layers[layer].experts != experts.count)
      map.value().refuse("the layers of the network have different numbers of experts");
  }
  return experts;
}

Experts read_experts(const YamlMap& map, const Model& model) {
  const std::vector<std::size_t> own = expert_layers(model);
  Experts experts = own.empty() ? Experts{} : own_experts(map, model, own);
  experts.ways = read_ways(map, "ways");
  if (const auto factor = map.maybe("capacity_factor")) experts.capacity_factor = factor->number(1, 100);
  if (!own.empty()) return experts;
  experts.count = static_cast<int>(map.at("experts", "experts a layer").integer(1, 1'000'000));
  if (const auto top = map.maybe("top")) experts.top = static_cast<int>(top->integer(1, 1000));
  if (const auto every = map.maybe("every")) experts.every = static_cast<int>(every->integer(1, 10'000));
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
  const int ways = read_ways(map, "ways");
  ModelPartition partition = partition_by_ways(ModelPartition::Form::filters, ways, batch, options);
  partition.simulated_only = filter_problem(model, ways);
  if (partition.simulated_only.empty()) partition.simulated_only = kernel_limit(model, options);
  if (partition.simulated_only.empty()) partition.simulated_only = filter_part_problem(model, ways);
  return partition;
}

ModelPartition tensor_partition(const YamlValue& value, const Model& model, std::int64_t batch) {
  const YamlMap map = read_map(value, layer_keys());
  const GroupOptions options = read_group_options(map);
  ModelPartition partition =
      partition_by_ways(ModelPartition::Form::blocks, read_ways(map, "ways"), batch, options);
  partition.simulated_only = tensor_problem(model, partition.ways);
  if (partition.simulated_only.empty()) partition.simulated_only = kernel_limit(model, options);
  if (partition.simulated_only.empty())
    partition.simulated_only = part_problem(model, shard_tensor(model, partition.ways));
  return partition;
}

namespace {

Plan read_tensor(const YamlValue& value, const Setting& setting) {
  Plan plan = share_layers(setting, read_map(value, layer_keys()), shard_tensor, tensor_problem);
  plan.partition = tensor_partition(value, setting.model, plan.partition.micro_batch);
  return plan;
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
  groups.partition.simulated_only = "experts, for which there are no kernels";
  const Model part = groups.sharded.part;
  return finish(setting, std::move(groups), part);
}

Plan read_model_parallel(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, machine_keys());
  const YamlValue where = map.at("machines", "machines that share a replica, an integer >= 1");
  const int machines = read_ways(map, "machines");
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
  Plan plan = finish(setting, std::move(groups), part);
  plan.summed_gradients = summed;
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

namespace {

constexpr int kMostParts = 100'000;

/// `4`: strips of the first spatial dimension; `[2, 2]`: devices along each.
Parts read_split(const YamlValue& value, const Model& model) {
  const std::size_t dimensions = std::max<std::size_t>(model.input.size(), 2) - 1;
  Parts parts(dimensions, 1);
  if (!value.is(YamlNode::Kind::sequence)) {
    parts.front() = static_cast<int>(value.integer(1, kMostParts));
    return parts;
  }
  const std::vector<YamlValue> list = value.list();
  if (list.size() != dimensions)
    value.expected(fmt::format("{} integers, devices along each dimension", dimensions));
  double devices = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    parts[i] = static_cast<int>(list[i].integer(1, kMostParts));
    devices *= parts[i];
  }
  if (devices > kMostParts)
    value.refuse(fmt::format("expected at most {} devices, got {:.0f}", kMostParts, devices));
  return parts;
}

std::string with_advice(std::string problem) {
  if (!problem.empty()) problem += "; set strategy.whole_from: LAYER to end the partition before this layer";
  return problem;
}

std::size_t read_whole_from(const YamlMap& map, const Model& model) {
  const std::size_t mixing = first_mixing_layer(model);
  const auto named = map.maybe("whole_from");
  if (!named && mixing < model.layers.size() && model.layers[mixing].kind == LayerKind::measured)
    map.value().refuse(with_advice(measured_problem(model)));
  if (!named) return mixing;
  const std::string name = named->text();
  for (std::size_t i = 0; i <= mixing && i < model.layers.size(); ++i) {
    if (model.layers[i].name == name) return i;
  }
  named->expected(
      mixing < model.layers.size()
          ? fmt::format("a layer up to {}, the first that mixes all positions", model.layers[mixing].name)
          : "the name of a layer");
}

const Keys& spatial_keys() {
  static const Keys keys = joined_keys(
      {group_keys(),
       {{"split", "integer or list", "a divisor of the workers", "required",
         "devices a sample: 4 strips, or [2, 2] along each dimension"},
        {"whole_from", "name of a layer", "", "the first layer that mixes all positions",
         "from this layer on, each device has whole samples"},
        {"batch_norm", "name", "group, local, all", "group", "devices whose samples the statistics cover"},
        part_trace_key()}});
  return keys;
}

Statistics read_statistics(const YamlMap& map) {
  const auto named = map.maybe("batch_norm");
  return named ? static_cast<Statistics>(named->one_of({"group", "local", "all"})) : Statistics::group;
}

SpatialPartition read_sample_partition(const YamlMap& map, const Model& model) {
  return {read_split(map.at("split", "devices a sample, such as 4 or [2, 2]"), model),
          read_whole_from(map, model)};
}

/// @returns reason why kernels cannot compute this; empty where they can
std::string simulated_only(const GroupOptions& options) {
  if (options.micro_batches > 1) return "accumulation over parts of a sample";
  if (options.recompute) return "recomputation";
  return options.training.mixed ? "activations of 2 bytes" : "";
}

}  // namespace

ModelPartition spatial_partition(const YamlValue& value, const Model& model, int workers,
                                 std::int64_t batch) {
  const YamlMap map = read_map(value, spatial_keys());
  ModelPartition partition;
  partition.form = ModelPartition::Form::positions;
  const GroupOptions options = read_group_options(map);
  partition.spatial = read_sample_partition(map, model);
  partition.spatial.separate_border = options.halo_overlap;
  const Statistics over = read_statistics(map);
  if (over == Statistics::group) partition.statistics_over = device_count(partition.spatial.parts);
  if (over == Statistics::all) partition.statistics_over = workers;
  partition.micro_batch = batch;
  partition.simulated_only = spatial_problem(model, partition.spatial);
  if (partition.simulated_only.empty())
    partition.simulated_only = kernel_problem(model, partition.spatial, batch);
  if (partition.simulated_only.empty()) partition.simulated_only = simulated_only(options);
  return partition;
}

namespace {

Plan read_spatial(const YamlValue& value, const Setting& setting) {
  const YamlMap map = read_map(value, spatial_keys());
  const GroupOptions options = read_group_options(map);
  const Model& model = setting.model;
  const SpatialPartition partition = read_sample_partition(map, model);
  const YamlValue split = map.at("split");
  const int ways = device_count(partition.parts);
  GroupPlan groups = begin_groups(setting, options, ways, split);
  refuse_if(with_advice(spatial_problem(model, partition)), split);
  set_samples(setting, setting.workers() / ways, groups);

  groups.sharded.part = largest_spatial_part(model, partition);
  groups.sharded.summed_in_group.assign(model.layers.size(), true);
  for (std::size_t i = partition.whole_from; i < model.layers.size(); ++i)
    groups.batch[i] = (groups.micro_batch + ways - 1) / ways;
  groups.captured_trace = map.maybe("part_trace");
  groups.input_share = 1.0 / ways;
  groups.memory.split = ways;
  if (ways > 1) add_halos(setting, partition, groups);
  add_resharding(model, partition, groups);
  add_statistics(model, read_statistics(map), groups);
  groups.partition = spatial_partition(value, model, setting.workers(), groups.micro_batch);
  allow_one_network(groups, model, statistics_problem(model, groups.partition.statistics_over, ways),
                    groups.partition);
  // The gradients of the parts of a sample make up one.
  const int summed = setting.workers() / ways * options.micro_batches;
  Plan plan = finish(setting, std::move(groups), model);
  plan.summed_gradients = summed;
  return plan;
}

}  // namespace

Strategy spatial_strategy() {
  return {
      "spatial",
      "height and width of each sample are partitioned over the devices of a group, with halo exchanges",
      "N. Dryden et al., Improving strong-scaling of CNN training by exploiting finer-grained parallelism, "
      "IPDPS 2019",
      read_spatial,
      spatial_keys(),
      "{kind: spatial, split: [2, 2]}",
      "small-mesh"};
}

}  // namespace stepcast
