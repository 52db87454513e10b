#include <algorithm>

#include "models/partition/layer_partition.hpp"

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
  upper.layers.erase(upper.layers.begin(), upper.layers.begin() + first);
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
void keep_own_filters(std::size_t layers, ShardedModel& sharded) {
  for (std::size_t i = 0; i < layers; ++i) {
    Layer& layer = sharded.part.layers[i];
    sharded.summed_in_group[i] = layer.kind != LayerKind::locally_connected;
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
  keep_own_filters(partitioned.spatial.whole_from, sharded);
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

}  // namespace stepcast
