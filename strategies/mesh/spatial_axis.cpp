#include "strategies/mesh/spatial_axis.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/fields.hpp"

namespace stepcast {
namespace {

constexpr int kMostParts = 100'000;

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

const Fields<MeshOptions>& position_fields() {
  static const Fields<MeshOptions> fields{
      field<MeshOptions>({"whole_from", KeyType::layer, "the first layer that mixes all positions",
                          "from this layer on, each device has whole samples"}),
      field("batch_norm", &MeshOptions::batch_norm,
            choice<Statistics>(
                {{"group", Statistics::group}, {"local", Statistics::local}, {"all", Statistics::all}}),
            "devices whose samples the statistics cover")};
  return fields;
}

}  // namespace

const Keys& position_keys() {
  return position_fields().keys();
}

void read_positions(const YamlMap& map, const std::optional<YamlValue>& split, const Model& model,
                    MeshOptions& options) {
  read_fields(map, position_fields(), options);
  if (!split && !map.has("whole_from")) return;
  const std::size_t whole_from = read_whole_from(map, model);
  if (!split) return;
  options.spatial = {read_split(*split, model), whole_from, options.group.halo_overlap};
  options.mesh.context = device_count(options.spatial.parts);
}

namespace {

/// The all-to-all before the first layer on whole samples, and the one back.
void add_resharding(const Model& model, std::size_t whole_from, GroupPlan& groups) {
  const Layer& first = model.layers[whole_from];
  const Bytes matrix = static_cast<double>(groups.micro_batch) * elements(first.input) * groups.element;
  LayerCalls& calls = groups.calls[whole_from];
  const CollectiveId forward =
      add_collective(groups.plan, Collective::Kind::all_to_all, groups.context, matrix);
  if (!forward.exists()) return;
  groups.plan.collectives.back().layer = whole_from;
  calls.before_forward.push_back({forward, "exchange"});
  if (!backward_data_needed(model)[whole_from]) return;
  calls.after_backward.push_back({forward, "exchange"});
}

/// An all-reduce of statistics after every batch-norm layer, forward and backward.
void add_statistics(const Model& model, Statistics over, LayerRange layers, GroupPlan& groups) {
  if (over == Statistics::local) return;
  const CommunicatorId communicator = over == Statistics::group ? groups.context : groups.replicas;
  for (int i = layers.first; i < layers.last; ++i) {
    if (model.layers[i].kind != LayerKind::batch_norm) continue;
    const Bytes size = batch_norm_statistics(model.layers[i]);
    const CollectiveId sum = add_collective(groups.plan, Collective::Kind::all_reduce, communicator, size);
    if (!sum.exists()) continue;
    Collective& statistics = groups.plan.collectives.back();
    statistics.buffer.array = Array::statistics;
    statistics.layer = i;
    groups.calls[i].after_forward.push_back({sum, "statistics"});
    groups.calls[i].after_backward.push_back({sum, "statistics"});
  }
}

}  // namespace

void divide_positions(const Model& model, const MeshOptions& options, const YamlValue& where,
                      ShardedModel& sharded) {
  refuse_if(with_advice(spatial_problem(model, options.spatial)), where);
  sharded.part = largest_spatial_part(model, options.spatial);
}

void divide_samples(const MeshOptions& options, GroupPlan& groups) {
  const int ways = options.mesh.context;
  for (std::size_t i = options.spatial.whole_from; i < groups.batch.size(); ++i)
    groups.batch[i] = (groups.micro_batch + ways - 1) / ways;
  groups.memory.split = ways;
}

void add_position_exchanges(const Setting& setting, const MeshOptions& options, LayerRange layers,
                            GroupPlan& groups) {
  const SpatialPartition& spatial = options.spatial;
  if (options.mesh.context > 1)
    add_halos(setting, spatial, layers, {groups.context, LocalFilters::all}, groups);
  const auto whole_from = static_cast<int>(spatial.whole_from);
  if (whole_from > 0 && layers.first <= whole_from && whole_from < layers.last)
    add_resharding(setting.model, spatial.whole_from, groups);
  add_statistics(setting.model, options.batch_norm, layers, groups);
}

int statistics_over(const MeshOptions& options) {
  if (options.batch_norm == Statistics::local) return 1;
  return options.batch_norm == Statistics::group ? options.mesh.context : options.mesh.copies();
}

}  // namespace stepcast
