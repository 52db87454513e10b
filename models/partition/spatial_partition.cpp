#include "models/partition/spatial_partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "models/network/layer.hpp"
#include "models/network/model.hpp"

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
    case LayerKind::scale:
    case LayerKind::slice:
    case LayerKind::state_space:
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
  return found - model.layers.begin();
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

namespace {

/// Integer division, rounded towards minus infinity.
std::int64_t floor_ratio(std::int64_t a, std::int64_t b) {
  return a >= 0 ? a / b : -((-a + b - 1) / b);
}

Rows clipped(Rows rows, std::int64_t size) {
  return {std::clamp<std::int64_t>(rows.first, 0, size), std::clamp<std::int64_t>(rows.last, 0, size)};
}

/// Messages of the forward or of the backward pass. @param shape  shape of the array whose rows are sent
std::vector<HaloMessage> messages(const Shape& shape, const SpatialPartition& partition,
                                  const std::vector<int>& place, const std::vector<Halo>& halos) {
  std::vector<double> extent{static_cast<double>(shape.front())};
  for (std::size_t i = 0; i < partition.parts.size(); ++i) {
    extent.push_back(part_of(shape[i + 1], partition.parts[i], place[i]).size());
  }
  std::vector<HaloMessage> found;
  for (std::size_t i = partition.parts.size(); i-- > 0;) {
    double row = 1;
    for (std::size_t other = 0; other < extent.size(); ++other) row *= other == i + 1 ? 1 : extent[other];
    if (halos[i].before > 0) found.push_back({i, true, halos[i].before * row});
    if (halos[i].after > 0) found.push_back({i, false, halos[i].after * row});
    extent[i + 1] += halos[i].before + halos[i].after;
  }
  return found;
}

LayerHalo layer_halo(const Layer& layer, const SpatialPartition& partition, const std::vector<int>& place,
                     bool backward) {
  const std::size_t dimensions = partition.parts.size();
  if (!is_map(layer.input, partition.parts) || !is_map(layer.output, partition.parts)) return {};
  std::vector<Halo> forward_rows, backward_rows;
  for (std::size_t i = 0; i < dimensions; ++i) {
    const DimensionHalo halo = dimension_halo(layer, i, partition.parts[i], place[i]);
    forward_rows.push_back(halo.forward);
    backward_rows.push_back(halo.backward);
  }
  LayerHalo halo;
  halo.forward = messages(layer.input, partition, place, forward_rows);
  if (backward) halo.backward = messages(layer.output, partition, place, backward_rows);
  return halo;
}

}  // namespace

Rows rows_read(const SlidingWindow& slide, Rows outputs, std::int64_t inputs) {
  if (outputs.size() <= 0) return {};
  return clipped({outputs.first * slide.stride - slide.pad_before,
                  (outputs.last - 1) * slide.stride - slide.pad_before + slide.kernel},
                 inputs);
}

Rows rows_reading(const SlidingWindow& slide, Rows inputs, std::int64_t outputs) {
  if (inputs.size() <= 0) return {};
  // Output o reads a row of [first, last) when o x stride - pad + kernel > first and o x stride - pad < last.
  return clipped({floor_ratio(inputs.first + slide.pad_before - slide.kernel, slide.stride) + 1,
                  floor_ratio(inputs.last - 1 + slide.pad_before, slide.stride) + 1},
                 outputs);
}

std::vector<LayerHalo> device_halos(const Model& model, const SpatialPartition& partition, int device) {
  const std::vector<bool> backward = backward_data_needed(model);
  const std::vector<int> place = grid_place(partition.parts, device);
  std::vector<LayerHalo> halos(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (partition.splits(i)) halos[i] = layer_halo(model.layers[i], partition, place, backward[i]);
  }
  return halos;
}

double elements_of(const std::vector<HaloMessage>& messages) {
  double sum = 0;
  for (const HaloMessage& message : messages) sum += message.elements;
  return sum;
}

namespace {

std::string without_rows(const Layer& layer, const Parts& parts) {
  for (const Shape& shape : {layer.input, layer.output}) {
    for (std::size_t i = 0; is_map(shape, parts) && i < parts.size(); ++i) {
      if (shape[i + 1] >= parts[i]) continue;
      return fmt::format("layer {} has {} rows for {} devices along dimension {}, so {} would have none",
                         layer.name, shape[i + 1], parts[i], i, parts[i] - shape[i + 1]);
    }
  }
  return "";
}

/// Number of rows of a device; 0 beyond the first and the last device.
std::int64_t rows_of(std::int64_t rows, int parts, int device) {
  return device < 0 || device >= parts ? 0 : part_of(rows, parts, device).size();
}

std::string beyond_neighbour(const Layer& layer, const Parts& parts) {
  if (!is_map(layer.input, parts) || !is_map(layer.output, parts)) return "";
  const auto reason = [&](std::int64_t needed, std::int64_t had) {
    return fmt::format("layer {} needs {} rows of a neighbour that has {}", layer.name, needed, had);
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (int device = 0; device < parts[i]; ++device) {
      const DimensionHalo halo = dimension_halo(layer, i, parts[i], device);
      for (const auto& [need, rows] :
           {std::pair{halo.forward, layer.input[i + 1]}, std::pair{halo.backward, layer.output[i + 1]}}) {
        const std::int64_t before = rows_of(rows, parts[i], device - 1);
        const std::int64_t after = rows_of(rows, parts[i], device + 1);
        if (need.before > before) return reason(need.before, before);
        if (need.after > after) return reason(need.after, after);
      }
    }
  }
  return "";
}

}  // namespace

std::string spatial_problem(const Model& model, const SpatialPartition& partition) {
  if (device_count(partition.parts) == 1) return "";
  if (!is_map(model.input, partition.parts)) {
    return fmt::format("a sample of shape {} cannot be partitioned along {} dimensions",
                       to_string(model.input), partition.parts.size());
  }
  const std::size_t mixing = first_mixing_layer(model);
  for (std::size_t i = 0; i < model.layers.size() && partition.splits(i); ++i) {
    if (i == mixing) {
      return fmt::format("layer {} mixes all positions and cannot be partitioned", model.layers[i].name);
    }
    std::string problem = without_rows(model.layers[i], partition.parts);
    if (problem.empty()) problem = beyond_neighbour(model.layers[i], partition.parts);
    if (!problem.empty()) return problem;
  }
  return "";
}

}  // namespace stepcast
