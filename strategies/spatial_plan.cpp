#include <fmt/format.h>

#include <algorithm>

#include "strategies/group_plan.hpp"
#include "strategies/shared_strategies.hpp"

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
  named->expected(mixing < model.layers.size()
                      ? fmt::format("a layer up to {}, which cannot be cut", model.layers[mixing].name)
                      : "the name of a layer");
}

std::string with_advice(std::string problem) {
  if (!problem.empty()) problem += "; strategy.whole_from: LAYER ends the cut before such a layer";
  return problem;
}

}  // namespace

Plan read_spatial(const YamlValue& value, const Setting& setting) {
  const YamlMap map =
      value.map(joined_keys({group_keys(), {"split", "whole_from", "batch_norm", "cut_trace"}}));
  const GroupOptions options = read_group_options(map);
  const YamlValue split = map.at("split", "devices a sample, such as 4 or [2, 2]");
  const Model& model = setting.model;
  const SampleCut cut{read_split(split, model), read_whole_from(map, model)};
  const int ways = device_count(cut.parts);
  GroupPlan groups = begin_groups(setting, options, ways, split);
  refuse_if(with_advice(cut_problem(model, cut)), split);
  set_samples(setting, setting.workers() / ways, groups);

  groups.sharded.part = cut_model(model, cut);
  groups.sharded.summed_in_group.assign(model.layers.size(), true);
  for (std::size_t i = cut.whole_from; i < model.layers.size(); ++i)
    groups.batch[i] = (groups.micro_batch + ways - 1) / ways;
  groups.cut_trace = map.maybe("cut_trace");
  groups.input_share = 1.0 / ways;
  groups.memory.split = ways;
  if (ways > 1) add_halos(setting, cut, groups);
  add_dealing(model, cut, groups);
  Statistics over = Statistics::group;
  if (const auto named = map.maybe("batch_norm"))
    over = static_cast<Statistics>(named->one_of({"group", "local", "all"}));
  add_statistics(model, over, groups);
  return finish(setting, std::move(groups), model);
}

}  // namespace stepcast
