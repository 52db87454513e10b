#include <fmt/format.h>

#include <algorithm>

#include "core/fields.hpp"
#include "models/partition/spatial_shard.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/options/strategy.hpp"

namespace stepcast {

namespace {

constexpr int kMostParts = 100'000;

/// `4`: strips of the first spatial dimension; `[2, 2]`: devices along each.
Parts read_split(const YamlValue& value, const Model& model) {
  const std::size_t dimensions = std::max<std::size_t>(model.input.size(), 2) - 1;
  Parts parts(dimensions, 1);
  if (!value.is(YamlNode::Kind::sequence)) {
    parts.front() = value.integer(1, kMostParts);
    return parts;
  }
  const std::vector<YamlValue> list = value.list();
  if (list.size() != dimensions)
    value.expected(fmt::format("{} integers, devices along each dimension", dimensions));
  double devices = 1;
  for (std::size_t i = 0; i < dimensions; ++i) {
    parts[i] = list[i].integer(1, kMostParts);
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

struct SpatialKeys {
  Statistics batch_norm = Statistics::group;
};

const Fields<SpatialKeys>& spatial_fields() {
  static const Fields<SpatialKeys> fields{
      field<SpatialKeys>({"split", "integer or list", "a divisor of the workers", "required",
                          "devices a sample: 4 strips, or [2, 2] along each dimension"}),
      field<SpatialKeys>({"whole_from", "name of a layer", "", "the first layer that mixes all positions",
                          "from this layer on, each device has whole samples"}),
      field("batch_norm", &SpatialKeys::batch_norm,
            choice<Statistics>(
                {{"group", Statistics::group}, {"local", Statistics::local}, {"all", Statistics::all}}),
            "devices whose samples the statistics cover")};
  return fields;
}

const Keys& spatial_keys() {
  static const Keys keys = joined_keys({group_keys(), spatial_fields().keys(), {part_trace_key()}});
  return keys;
}

Statistics read_statistics(const YamlMap& map) {
  SpatialKeys keys;
  read_fields(map, spatial_fields(), keys);
  return keys.batch_norm;
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
