#include <fmt/format.h>

#include <algorithm>

#include "models/network/layer.hpp"
#include "models/partition/layer_partition.hpp"
#include "models/partition/tensor_shard.hpp"

namespace stepcast {
namespace {

/// The most square grid of `machines` parts. The first dimension has no fewer parts than the second.
Parts grid(std::size_t dimensions, int machines) {
  Parts parts(dimensions, 1);
  if (dimensions == 0) return parts;
  int second = 1;
  for (int i = 1; dimensions > 1 && i * i <= machines; ++i) second = machines % i == 0 ? i : second;
  parts.front() = machines / second;
  if (dimensions > 1) parts[1] = second;
  return parts;
}

bool is_pool(LayerKind kind) {
  return kind == LayerKind::max_pool || kind == LayerKind::average_pool;
}

/// The partition of all layers before the first one that mixes all positions or has too few.
SpatialPartition spatial_partition_of(const Model& model, int machines) {
  SpatialPartition spatial{grid(model.input.empty() ? 0 : model.input.size() - 1, machines), 0};
  if (spatial.parts.empty()) return spatial;
  spatial.whole_from = first_mixing_layer(model);
  while (spatial.whole_from > 0 && !spatial_problem(model, spatial).empty()) --spatial.whole_from;
  return spatial;
}

/// The layers from `first` on, as a network whose whole input is on every machine.
Model upper_layers(const Model& model, std::size_t first) {
  Model upper = model;
  if (first > 0 && first < model.layers.size()) upper.input = model.layers[first].input;
  upper.layers.erase(upper.layers.begin(), upper.layers.begin() + static_cast<std::ptrdiff_t>(first));
  for (Layer& layer : upper.layers) {
    for (int& input : layer.inputs) input = std::max(kNetworkInput, input - static_cast<int>(first));
    layer.weight_of = std::max(-1, layer.weight_of - static_cast<int>(first));
  }
  return upper;
}

/// The first layer that is partitioned by units. It follows a pool that every machine computes for its part
/// of the map, and a flattening.
std::size_t first_dense(const Model& model, const SpatialPartition& spatial) {
  std::size_t first = spatial.whole_from;
  if (first > 0 && first < model.layers.size() && is_pool(model.layers[first].kind)) ++first;
  while (first > 0 && first < model.layers.size() && model.layers[first].kind == LayerKind::reshape) ++first;
  return first;
}

/// Sets the parameters of the first layers to those of one machine: locally connected filters are stored with
/// their positions.
void keep_own_filters(std::size_t layers, Model& part) {
  for (std::size_t i = 0; i < layers; ++i) {
    Layer& layer = part.layers[i];
    if (layer.kind != LayerKind::locally_connected) continue;
    for (ParameterTensor& tensor : layer.parameters)
      std::copy(layer.output.begin() + 1, layer.output.end(), tensor.shape.begin());
  }
}

/// Adds the collectives that end the spatial partition: the parts of the windows of a pool are added up, or
/// the maps are gathered as the input of a dense layer. Every machine then has the whole array, and its part
/// of the error signal.
void join_maps(const Model& model, const SpatialPartition& spatial, std::size_t dense,
               ShardedModel& sharded) {
  const std::size_t first = spatial.whole_from;
  if (first == 0 || dense >= model.layers.size()) return;
  const double whole = ParameterTensor{"", model.layers[dense].input}.elements();
  LayerExchange& exchange = sharded.exchanges[dense];
  if (!is_pool(model.layers[first].kind)) {
    exchange.before_forward.push_back({Exchange::Kind::all_gather, whole});
    exchange.after_backward.push_back({Exchange::Kind::reduce_scatter, whole});
    return;
  }
  sharded.part.layers[first].input = sharded.part.layers[first - 1].output;
  exchange.before_forward.push_back({Exchange::Kind::all_reduce, whole});
  exchange.after_backward.push_back({Exchange::Kind::all_reduce, whole});
}

}  // namespace

PartitionedModel partition(const Model& model, int machines) {
  PartitionedModel partitioned;
  partitioned.spatial = spatial_partition_of(model, machines);
  ShardedModel& sharded = partitioned.sharded;
  sharded.part = largest_spatial_part(model, partitioned.spatial);
  sharded.exchanges.resize(model.layers.size());
  sharded.summed_in_group.assign(model.layers.size(), false);
  keep_own_filters(partitioned.spatial.whole_from, sharded.part);
  for (std::size_t i = 0; i < partitioned.spatial.whole_from; ++i)
    sharded.summed_in_group[i] = model.layers[i].kind != LayerKind::locally_connected;
  const std::size_t first = first_dense(model, partitioned.spatial);
  const ShardedModel upper = shard_filters(upper_layers(model, first), machines);
  for (std::size_t i = first; i < model.layers.size(); ++i) {
    const std::vector<int> inputs = model.layers[i].inputs;
    sharded.part.layers[i] = upper.part.layers[i - first];
    sharded.part.layers[i].inputs = inputs;
    sharded.exchanges[i] = upper.exchanges[i - first];
  }
  if (machines > 1) join_maps(model, partitioned.spatial, first, sharded);
  return partitioned;
}

std::string partition_problem(const Model& model, int machines) {
  const SpatialPartition spatial = spatial_partition_of(model, machines);
  const std::size_t first = first_dense(model, spatial);
  const std::size_t mixing = spatial.parts.empty() ? 0 : first_mixing_layer(model);
  if (first < mixing) return spatial_problem(model, {spatial.parts, mixing});
  return filter_problem(upper_layers(model, first), machines);
}

namespace {

/// The machine's part of an array of a layer on parts of samples: whole, or the filters of its positions.
ArrayPart position_part(const Layer& whole, const ParameterTensor& tensor, const LayerShardRows& rows) {
  const std::int64_t row = tensor.elements() / tensor.shape.front();
  ArrayPart part{{{0, tensor.shape.front()}}, {0, row}};
  if (whole.kind != LayerKind::locally_connected) return part;
  part.rows = {rows[0].out};
  if (rows.size() == 1) return part;
  const std::int64_t position = row / tensor.shape[1];
  part.columns = {position * rows[1].out.first, position * rows[1].out.last};
  return part;
}

/// The input of the first dense layer: each machine has its positions of the map.
GatheredInput gathered_positions(const Model& model, const SpatialPartition& spatial, std::size_t dense) {
  GatheredInput input;
  input.source = model.layers[dense].inputs.front();
  int source = input.source;
  while (source >= 0 && !is_map(model.layers[static_cast<std::size_t>(source)].output, spatial.parts))
    source = model.layers[static_cast<std::size_t>(source)].inputs.front();
  input.map = source < 0 ? model.input : model.layers[static_cast<std::size_t>(source)].output;
  input.is_partial_sum = !is_loss(model.layers[dense].kind);
  for (int place = 0; place < device_count(spatial.parts); ++place) {
    const std::vector<int> at = grid_place(spatial.parts, place);
    auto& box = input.parts.emplace_back(std::vector<Rows>{{0, input.map.front()}});
    for (std::size_t i = 0; i < spatial.parts.size(); ++i)
      box.push_back(part_of(input.map[i + 1], spatial.parts[i], at[i]));
  }
  return input;
}

/// Puts the layers from `first` on into the part, with the machine's units.
void add_dense_layers(const SharedPart& dense, std::size_t first, SharedPart& part) {
  const auto shift = static_cast<int>(first);
  for (std::size_t i = first; i < part.whole.layers.size(); ++i) {
    Layer& layer = part.model.layers[i];
    const Layer whole = layer;
    layer = dense.model.layers[i - first];
    layer.inputs = whole.inputs;
    layer.weight_of = whole.weight_of;
    part.arrays[i] = dense.arrays[i - first];
    part.gathered[i] = dense.gathered[i - first];
    if (part.gathered[i]) part.gathered[i]->source += shift;
  }
}

}  // namespace

SharedPart machine_shard(const Model& model, int machines, bool separate_border, int place) {
  SpatialPartition spatial = spatial_partition_of(model, machines);
  spatial.separate_border = separate_border;
  const std::size_t first = first_dense(model, spatial), layers = model.layers.size();
  if (machines == 1 || first == 0) return filter_shard(model, machines, place);
  SpatialShard shard = spatial_shard(model, spatial, place);
  keep_own_filters(first, shard.model);
  SharedPart part{model, shard.model, {}, {}, {}, {}};
  part.shares.resize(layers);
  part.gathered.resize(layers);
  part.arrays.resize(layers);
  for (std::size_t i = 0; i < first; ++i) {
    const LayerShardRows rows = shard_rows(model.layers[i], spatial, grid_place(spatial.parts, place));
    for (const ParameterTensor& tensor : model.layers[i].parameters)
      part.arrays[i].push_back(position_part(model.layers[i], tensor, rows));
  }
  if (first < layers) {
    add_dense_layers(filter_shard(upper_layers(model, first), machines, place), first, part);
    part.gathered[first] = gathered_positions(model, spatial, first);
  }
  for (std::size_t i = first; i < layers; ++i)
    shard.share[i] = static_cast<double>(elements(part.model.layers[i].input)) /
                     static_cast<double>(elements(model.layers[i].input));
  shard.model = part.model;
  part.spatial = std::move(shard);
  return part;
}

namespace {

/// The reason why the machines' parts of maps are not equal; empty if they are.
std::string unequal_parts(const Model& model, const SpatialPartition& spatial) {
  for (std::size_t i = 0; i < spatial.whole_from; ++i) {
    for (const Shape& map : {model.layers[i].input, model.layers[i].output}) {
      for (std::size_t k = 0; is_map(map, spatial.parts) && k < spatial.parts.size(); ++k) {
        if (map[k + 1] % spatial.parts[k] != 0)
          return fmt::format("layer {} ({}) has parts of unequal size", model.layers[i].name,
                             to_string(model.layers[i].kind));
      }
    }
  }
  return "";
}

/// The reason why the dense layers need more of the maps than what the first of them gathers; empty if they
/// do not.
std::string further_readers(const Model& model, std::size_t dense) {
  for (std::size_t i = dense; dense > 0 && i < model.layers.size(); ++i) {
    const std::vector<int>& inputs = model.layers[i].inputs;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      const bool gathers = i == dense && k == 0 && inputs[k] >= 0;
      if (inputs[k] < static_cast<int>(dense) && !gathers)
        return fmt::format("layer {} ({}) reads what other devices have", model.layers[i].name,
                           to_string(model.layers[i].kind));
    }
  }
  return "";
}

}  // namespace

std::string machine_part_problem(const Model& model, int machines) {
  if (machines == 1) return "";
  const SpatialPartition spatial = spatial_partition_of(model, machines);
  const std::size_t dense = first_dense(model, spatial);
  if (dense != spatial.whole_from) {
    const Layer& layer = model.layers[spatial.whole_from];
    return fmt::format("layer {} ({}) has windows over parts of several devices", layer.name,
                       to_string(layer.kind));
  }
  std::string problem = layer_kernel_problem(model, spatial, LocalFilters::own_positions);
  if (problem.empty()) problem = unequal_parts(model, spatial);
  if (problem.empty()) problem = further_readers(model, dense);
  return problem.empty() ? filter_part_problem(upper_layers(model, dense), machines) : problem;
}

}  // namespace stepcast
