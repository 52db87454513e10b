#include "models/partition/spatial_partition.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

#include "models/network/layer.hpp"

namespace stepcast {

bool is_map(const Shape& shape, const Parts& parts) {
  return shape.size() == parts.size() + 1;
}
namespace {

bool covers_all(const Layer& layer) {
  for (std::size_t i = 0; i < layer.window.kernel.size(); ++i) {
    if (layer.window.kernel[i] < layer.input[i + 1]) return false;
  }
  return true;
}

bool mixes_positions(const Layer& layer) {
  switch (layer.kind) {
    case LayerKind::dense:
    case LayerKind::embedding:
    case LayerKind::layer_norm:
    case LayerKind::rms_norm:
    case LayerKind::swiglu:
    case LayerKind::rotary_embedding:
    case LayerKind::experts:
    case LayerKind::position_embedding:
    case LayerKind::class_token:
    case LayerKind::first_token:
    case LayerKind::lstm:
    case LayerKind::gru:
    case LayerKind::attention:
    case LayerKind::softmax_cross_entropy:
    case LayerKind::measured:
      return true;
    case LayerKind::max_pool:
    case LayerKind::average_pool:
      return covers_all(layer);
    default:
      return false;
  }
}

/// Shape of the largest part of a map, or of a flattened map.
Shape largest_part(Shape shape, const Parts& parts) {
  if (shape.size() == 1 && shape.front() == 1) return shape;  // the output of a loss
  if (!is_map(shape, parts)) {
    shape.back() = part_of(shape.back(), device_count(parts), 0).size();
    return shape;
  }
  for (std::size_t i = 0; i < parts.size(); ++i) shape[i + 1] = part_of(shape[i + 1], parts[i], 0).size();
  return shape;
}

}  // namespace

int device_count(const Parts& parts) {
  return std::accumulate(parts.begin(), parts.end(), 1, std::multiplies<>());
}

std::vector<int> grid_place(const Parts& parts, int device) {
  std::vector<int> place(parts.size());
  for (std::size_t i = parts.size(); i-- > 0;) {
    place[i] = device % parts[i];
    device /= parts[i];
  }
  return place;
}

Rows part_of(std::int64_t rows, int parts, int index) {
  const std::int64_t each = rows / parts, more = rows % parts;
  const std::int64_t first = index * each + std::min<std::int64_t>(index, more);
  return {first, first + each + (index < more ? 1 : 0)};
}

std::size_t first_mixing_layer(const Model& model) {
  const auto found = std::find_if(model.layers.begin(), model.layers.end(), mixes_positions);
  return static_cast<std::size_t>(found - model.layers.begin());
}

Model largest_spatial_part(const Model& model, const SpatialPartition& partition) {
  Model part = model;
  for (std::size_t i = 0; i < part.layers.size(); ++i) {
    if (!partition.splits(i)) continue;
    part.layers[i].input = largest_part(part.layers[i].input, partition.parts);
    part.layers[i].output = largest_part(part.layers[i].output, partition.parts);
  }
  return part;
}

}  // namespace stepcast
