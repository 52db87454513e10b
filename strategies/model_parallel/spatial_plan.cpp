#include <fmt/format.h>

#include <algorithm>

#include "models/partition/spatial_shard.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/model_parallel/layer_parallel_plans.hpp"

namespace stepcast {
namespace {

/// `4`: strips of the first spatial dimension; `[2, 2]`: devices along each.
Parts read_split(const YamlValue& value, const Model& model) {
  const std::size_t dimensions = std::max<std::size_t>(model.input.size(), 2) - 1;
  Parts parts(dimensions, 1);
  if (!value.is(YamlNode::Kind::sequence)) {
    parts.front() = static_cast<int>(value.integer(1, 100'000));
    return parts;
  }
  const std::vector<YamlValue> list = value.list();
  if (list.size() != dimensions)
    value.expected(fmt::format("{} integers, devices along each dimension", dimensions));
  for (std::size_t i = 0; i < dimensions; ++i) parts[i] = static_cast<int>(list[i].integer(1, 100'000));
  return parts;
}

std::size_t read_whole_from(const YamlMap& map, const Model& model) {
  const std::size_t mixing = first_mixing_layer(model);
  const auto named = map.maybe("whole_from");
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

std::string with_advice(std::string problem) {
  if (!problem.empty()) problem += "; set strategy.whole_from: LAYER to end the partition before this layer";
  return problem;
}

const StrategyKeys& spatial_keys() {
  static const StrategyKeys keys = joined_keys(
      {group_keys(),
       {{"split", "integer or list", "a divisor of the workers", "required",
         "devices a sample: 4 strips, or [2, 2] along each dimension"},
        {"whole_from", "name of a layer", "", "the first layer that mixes all positions",
         "from this layer on, each device has whole samples"},
        {"batch_norm", "name", "group, local, all", "group", "devices whose samples the statistics cover"},
        cut_trace_key()}});
  return keys;
}

Statistics read_statistics(const YamlMap& map) {
  const auto named = map.maybe("batch_norm");
  return named ? static_cast<Statistics>(named->one_of({"group", "local", "all"})) : Statistics::group;
}

SpatialPartition read_sample_cut(const YamlMap& map, const Model& model) {
  return {read_split(map.at("split", "devices a sample, such as 4 or [2, 2]"), model),
          read_whole_from(map, model)};
}

/// @returns reason why kernels cannot compute this; empty where they can
std::string simulated_only(const GroupOptions& options) {
  if (options.micro_batches > 1) return "accumulation over parts of a sample";
  if (options.recompute) return "recomputation";
  if (options.training.mixed) return "activations of 2 bytes";
  return options.halo_overlap ? "separate kernels of border and interior (set halo_overlap: false)" : "";
}

}  // namespace

NetworkSharing spatial_sharing(const YamlValue& value, const Model& model, int workers, std::int64_t batch) {
  const YamlMap map = strategy_map(value, spatial_keys());
  NetworkSharing sharing;
  sharing.form = NetworkSharing::Form::positions;
  sharing.cut = read_sample_cut(map, model);
  const Statistics over = read_statistics(map);
  if (over == Statistics::group) sharing.statistics_over = device_count(sharing.cut.parts);
  if (over == Statistics::all) sharing.statistics_over = workers;
  sharing.micro_batch = batch;
  sharing.simulated_only = spatial_problem(model, sharing.cut);
  if (sharing.simulated_only.empty()) sharing.simulated_only = kernel_problem(model, sharing.cut, batch);
  if (sharing.simulated_only.empty()) sharing.simulated_only = simulated_only(read_group_options(map));
  return sharing;
}

namespace {

Plan read_spatial(const YamlValue& value, const Setting& setting) {
  const YamlMap map = strategy_map(value, spatial_keys());
  const GroupOptions options = read_group_options(map);
  const Model& model = setting.model;
  const SpatialPartition cut = read_sample_cut(map, model);
  const YamlValue split = map.at("split");
  const int ways = device_count(cut.parts);
  GroupPlan groups = begin_groups(setting, options, ways, split);
  refuse_if(with_advice(spatial_problem(model, cut)), split);
  set_samples(setting, setting.workers() / ways, groups);

  groups.sharded.part = largest_spatial_part(model, cut);
  groups.sharded.summed_in_group.assign(model.layers.size(), true);
  for (std::size_t i = cut.whole_from; i < model.layers.size(); ++i)
    groups.batch[i] = (groups.micro_batch + ways - 1) / ways;
  groups.cut_trace = map.maybe("cut_trace");
  groups.input_share = 1.0 / ways;
  groups.memory.split = ways;
  if (ways > 1) add_halos(setting, cut, groups);
  add_resharding(model, cut, groups);
  add_statistics(model, read_statistics(map), groups);
  groups.sharing = spatial_sharing(value, model, setting.workers(), groups.micro_batch);
  Plan plan = finish(setting, std::move(groups), model);
  plan.summed_gradients = setting.workers() / ways;  // the gradients of the parts of a sample make up one
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
