#include "models/partition/spatial_shard.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/network/layer.hpp"

namespace stepcast {
namespace {

Rows hull(const Rows& a, const Rows& b) {
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}

/// Sets the rows of up-sampling by a factor.
void set_repeated(std::int64_t factor, ShardRows& rows) {
  rows.read = {rows.out.first / factor, (rows.out.last + factor - 1) / factor};
  rows.reading = {rows.in.first * factor, rows.in.last * factor};
}

/// Sets the rows that need no halo. @param computed  rows of the output that the forward pass computes
void set_interior(const SlidingWindow& slide, const Rows& computed, std::int64_t inputs, std::int64_t outputs,
                  ShardRows& rows) {
  rows.window = slide;
  rows.inner = computed;
  for (std::int64_t row = computed.first; row < computed.last; ++row) {
    const Rows read = rows_read(slide, {row, row + 1}, inputs);
    if (read.first < rows.in.first) rows.inner.first = row + 1;
    if (read.last > rows.in.last) rows.inner.last = std::min(rows.inner.last, row);
  }
  rows.inner_back = rows.in;
  for (std::int64_t row = rows.in.first; row < rows.in.last; ++row) {
    const Rows reading = rows_reading(slide, {row, row + 1}, outputs);
    if (reading.size() <= 0) continue;
    if (reading.first < rows.out.first) rows.inner_back.first = row + 1;
    if (reading.last > rows.out.last) rows.inner_back.last = std::min(rows.inner_back.last, row);
  }
}

/// Sets the rows of a layer with a sliding window.
/// @param largest  whether the layer is a max pool, whose backward pass needs all windows that read its
/// inputs
void set_windows(const SlidingWindow& slide, bool largest, std::int64_t inputs, std::int64_t outputs,
                 ShardRows& rows) {
  const auto first_read = [&](const Rows& out) { return out.first * slide.stride - slide.pad_before; };
  const auto last_read = [&](const Rows& out) {
    return (out.last - 1) * slide.stride - slide.pad_before + slide.kernel;
  };
  const auto beyond = [&](const Rows& out, const Rows& in) {
    return Halo{in.first - first_read(out), std::max<std::int64_t>(0, last_read(out) - in.last)};
  };
  rows.reading = rows_reading(slide, rows.in, outputs);
  if (largest && rows.reading.size() > 0) rows.reading = hull(rows.reading, rows.out);
  const Rows windows = largest && rows.reading.size() > 0 ? rows.reading : rows.out;
  rows.read = rows_read(slide, windows, inputs);
  rows.read_back = rows_read(slide, rows.reading, inputs);
  rows.pad = beyond(windows, rows.read);
  rows.pad_in = beyond(rows.reading, rows.in);
  rows.pad_back = beyond(rows.reading, rows.read_back);
  set_interior(slide, largest ? hull(rows.reading, rows.out) : rows.out, inputs, outputs, rows);
}

Shape own_shape(Shape shape, const SpatialPartition& partition, const std::vector<int>& place) {
  for (std::size_t i = 0; i < partition.parts.size(); ++i)
    shape[i + 1] = part_of(shape[i + 1], partition.parts[i], place[i]).size();
  return shape;
}

void partition_layer(const SpatialPartition& partition, const std::vector<int>& place,
                     const LayerShardRows& rows, Layer& layer, const Shape& input) {
  const bool map = is_map(layer.output, partition.parts);
  layer.input = input;
  if (map) {
    layer.output = own_shape(layer.output, partition, place);
  } else if (!is_loss(layer.kind)) {
    layer.output = {elements(input)};  // a flattening, or an element-wise layer after one
  }
  for (std::size_t i = 0; i < rows.size() && !layer.window.stride.empty(); ++i) {
    const Halo pad = pad_of_own(rows[i]);
    layer.window.pad_before[i] = pad.before;
    layer.window.pad_after[i] = pad.after;
  }
}

}  // namespace

LayerShardRows shard_rows(const Layer& layer, const SpatialPartition& partition,
                          const std::vector<int>& place) {
  LayerShardRows found;
  if (!is_map(layer.input, partition.parts) || !is_map(layer.output, partition.parts)) return found;
  for (std::size_t i = 0; i < partition.parts.size(); ++i) {
    ShardRows rows;
    rows.in = rows.read = rows.read_back = part_of(layer.input[i + 1], partition.parts[i], place[i]);
    rows.out = rows.reading = part_of(layer.output[i + 1], partition.parts[i], place[i]);
    if (layer.kind == LayerKind::up_sample) {
      set_repeated(layer.window.kernel[i], rows);
    } else if (!layer.window.stride.empty() && partition.parts[i] == 1) {
      rows.pad = rows.pad_in = rows.pad_back = {layer.window.pad_before[i], layer.window.pad_after[i]};
      rows.window = {layer.window.kernel[i], layer.window.stride[i], layer.window.pad_before[i]};
      rows.inner = rows.out;
      rows.inner_back = rows.in;
    } else if (!layer.window.stride.empty()) {
      const SlidingWindow slide{layer.window.kernel[i], layer.window.stride[i], layer.window.pad_before[i]};
      set_windows(slide, layer.kind == LayerKind::max_pool, layer.input[i + 1], layer.output[i + 1], rows);
    }
    found.push_back(rows);
  }
  return found;
}

WindowRows window_rows(const SlidingWindow& window, const Rows& outputs, const Rows& held) {
  WindowRows rows{outputs, {}, {}};
  if (outputs.size() <= 0) return rows;
  const Rows all{outputs.first * window.stride - window.pad_before,
                 (outputs.last - 1) * window.stride - window.pad_before + window.kernel};
  rows.read = common(all, held);
  rows.pad = {rows.read.first - all.first, all.last - rows.read.last};
  return rows;
}

WindowRows window_rows_reading(const ShardRows& shard, const Rows& inputs) {
  const Rows outputs = common(rows_reading(shard.window, inputs, shard.reading.last), shard.reading);
  return window_rows(shard.window, outputs, shard.read_back);
}

Rows common(const Rows& a, const Rows& b) {
  return {std::max(a.first, b.first), std::min(a.last, b.last)};
}

SeparatedBox separate_border(const std::vector<Rows>& box, const std::vector<Rows>& inner) {
  SeparatedBox separated{box, {}};
  std::vector<Rows>& rest = separated.interior;
  for (std::size_t i = 0; i < box.size(); ++i) {
    const Rows whole = box[i];
    const std::int64_t first = std::clamp(inner[i].first, whole.first, whole.last);
    const std::int64_t last = std::clamp(inner[i].last, first, whole.last);
    for (const Rows& side : {Rows{whole.first, first}, Rows{last, whole.last}}) {
      if (side.size() <= 0) continue;
      rest[i] = side;
      separated.border.push_back(rest);
    }
    rest[i] = {first, last};
  }
  return separated;
}

bool within(const Rows& inner, const Rows& outer) {
  return inner.first >= outer.first && inner.last <= outer.last;
}

namespace {

/// Number of needed rows before and after the own rows.
Halo outside(Rows needed, Rows own) {
  if (needed.size() <= 0) return {};
  return {std::max<std::int64_t>(0, own.first - needed.first),
          std::max<std::int64_t>(0, needed.last - own.last)};
}

/// The rows of a device along one dimension, in which alone the layer is divided.
ShardRows rows_along(const Layer& layer, std::size_t dimension, int parts, int index) {
  SpatialPartition one{Parts(layer.input.size() - 1, 1)};
  one.parts[dimension] = parts;
  std::vector<int> place(one.parts.size());
  place[dimension] = index;
  const LayerShardRows rows = shard_rows(layer, one, place);
  return rows.empty() ? ShardRows{} : rows[dimension];
}

bool has_sliding_window(LayerKind kind) {
  return kind == LayerKind::convolution || kind == LayerKind::locally_connected ||
         kind == LayerKind::max_pool || kind == LayerKind::average_pool;
}

}  // namespace

DimensionHalo dimension_halo(const Layer& layer, std::size_t dimension, int parts, int index) {
  if (parts == 1) return {};
  const ShardRows rows = rows_along(layer, dimension, parts, index);
  return {outside(rows.read, rows.in), outside(rows.reading, rows.out)};
}

BorderShare border_share(const Layer& layer, const Parts& parts) {
  BorderShare inside{1, 1};
  if (!has_sliding_window(layer.kind) || !is_map(layer.input, parts)) return {};
  const auto share = [](const Rows& own, const Rows& inner) {
    const std::int64_t border = own.size() - std::max<std::int64_t>(0, common(inner, own).size());
    return own.size() > 0 ? static_cast<double>(border) / own.size() : 0.0;
  };
  for (std::size_t i = 0; i < parts.size(); ++i) {
    BorderShare most;
    for (int index = 0; index < parts[i]; ++index) {
      const ShardRows rows = rows_along(layer, i, parts[i], index);
      most.forward = std::max(most.forward, share(rows.out, rows.inner));
      most.backward = std::max(most.backward, share(rows.in, rows.inner_back));
    }
    inside = {inside.forward * (1 - most.forward), inside.backward * (1 - most.backward)};
  }
  return {1 - inside.forward, 1 - inside.backward};
}

bool reads_neighbours(const Layer& layer, const SpatialPartition& partition) {
  for (int device = 0; device < device_count(partition.parts); ++device) {
    for (const ShardRows& rows : shard_rows(layer, partition, grid_place(partition.parts, device))) {
      if (!within(rows.read, rows.in) || !within(rows.reading, rows.out)) return true;
    }
  }
  return false;
}

Halo pad_of_own(const ShardRows& rows) {
  return {rows.pad.before + rows.in.first - rows.read.first,
          std::max<std::int64_t>(0, rows.pad.after + rows.read.last - rows.in.last)};
}

SpatialShard spatial_shard(const Model& model, const SpatialPartition& partition, int device) {
  const std::vector<int> place = grid_place(partition.parts, device);
  SpatialShard part{model, {}, {}, partition.separate_border};
  const int ways = device_count(partition.parts);
  if (partition.whole_from > 0) part.model.input = own_shape(model.input, partition, place);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    part.rows.emplace_back();
    part.share.push_back(1.0 / ways);
    if (!partition.splits(i)) continue;
    Layer& layer = part.model.layers[i];
    const int from = layer.inputs.front();
    const Shape& input = from < 0 ? part.model.input : part.model.layers[from].output;
    const LayerShardRows rows = shard_rows(model.layers[i], partition, place);
    if (reads_neighbours(model.layers[i], partition)) part.rows.back() = rows;
    part.share.back() = static_cast<double>(elements(input)) / elements(layer.input);
    partition_layer(partition, place, rows, layer, Shape(input));
  }
  return part;
}

std::vector<Rows> halo_box(const Model& model, const SpatialPartition& partition,
                           const ReceivedHalo& message) {
  const auto& [layer, errors, target, dimension, from_before] = message;
  const LayerShardRows shard =
      shard_rows(model.layers[layer], partition, grid_place(partition.parts, target));
  std::vector<Rows> box;
  for (std::size_t i = 0; i < shard.size(); ++i) {
    const Rows own = errors ? shard[i].out : shard[i].in, needed = errors ? shard[i].reading : shard[i].read;
    if (i < dimension) box.push_back(own);
    if (i > dimension) box.push_back(hull(own, needed));
    if (i == dimension)
      box.push_back(from_before ? Rows{needed.first, own.first} : Rows{own.last, needed.last});
  }
  return box;
}

namespace {

/// The device before or after along a dimension.
int neighbour(const SpatialPartition& partition, int device, std::size_t dimension, bool before) {
  int stride = 1;
  for (std::size_t i = dimension + 1; i < partition.parts.size(); ++i) stride *= partition.parts[i];
  return device + (before ? -stride : stride);
}

/// True if a message includes corners that its sender does not have. A device has only those rows of its
/// neighbours that it reads.
bool corner_missing(const Model& model, const SpatialPartition& partition, std::size_t layer, bool errors,
                    int device) {
  const LayerShardRows rows = shard_rows(model.layers[layer], partition, grid_place(partition.parts, device));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const DimensionHalo halo =
        dimension_halo(model.layers[layer], i, partition.parts[i], grid_place(partition.parts, device)[i]);
    const Halo& needed = errors ? halo.backward : halo.forward;
    for (const bool before : {true, false}) {
      if ((before ? needed.before : needed.after) == 0) continue;
      const auto box = halo_box(model, partition, {layer, errors, device, i, before});
      const int source = neighbour(partition, device, i, before);
      const LayerShardRows theirs =
          shard_rows(model.layers[layer], partition, grid_place(partition.parts, source));
      bool corners = false;
      for (std::size_t j = i + 1; j < rows.size(); ++j)
        corners = corners || !within(box[j], errors ? rows[j].out : rows[j].in);
      if (corners && !within(box[i], errors ? theirs[i].reading : theirs[i].read)) return true;
    }
  }
  return false;
}

/// True if the windows of a part do not begin with its first row, or end before its last row.
bool skips_rows(const Layer& layer, const LayerShardRows& rows) {
  for (std::size_t i = 0; i < rows.size() && !layer.window.stride.empty(); ++i) {
    const Halo pad = pad_of_own(rows[i]);
    const std::int64_t reach = rows[i].in.size() + pad.before + pad.after - layer.window.kernel[i];
    if (pad.before < 0 || reach / layer.window.stride[i] + 1 != rows[i].out.size()) return true;
  }
  return false;
}

std::string layer_problem(const Model& model, const SpatialPartition& partition, std::size_t index,
                          int device, LocalFilters held) {
  const Layer& layer = model.layers[index];
  const LayerShardRows rows = shard_rows(layer, partition, grid_place(partition.parts, device));
  if (layer.kind == LayerKind::reshape && is_map(layer.output, partition.parts))
    return fmt::format("layer {} reshapes a partitioned map into another map", layer.name);
  const std::string name = fmt::format("layer {} ({}) ", layer.name, to_string(layer.kind));
  const bool local = layer.kind == LayerKind::locally_connected;
  if (local && held == LocalFilters::all) return name + "has filters of its own at every position";
  if (!reads_neighbours(layer, partition))
    return skips_rows(layer, rows) ? name + "skips rows at the partition boundary" : "";
  if (layer.kind != LayerKind::convolution && layer.kind != LayerKind::average_pool &&
      layer.kind != LayerKind::max_pool && !local)
    return name + "reads rows of a neighbour device";
  for (const ShardRows& one : rows) {
    if (one.reading.size() <= 0 || (layer.kind == LayerKind::convolution && one.pad_in.before < 0) ||
        (local && !within(one.in, one.read)))
      return name + "skips rows at the partition boundary";
  }
  for (const bool errors : {false, true}) {
    if (corner_missing(model, partition, index, errors, device))
      return name + "needs a corner that its neighbour device does not have";
  }
  return "";
}

/// The reason why whole samples cannot be redistributed among the devices; they must get equal shares.
std::string redistribution_problem(const Model& model, const SpatialPartition& partition,
                                   std::int64_t batch) {
  if (partition.whole_from == 0 || partition.whole_from >= model.layers.size()) return "";
  const int ways = device_count(partition.parts);
  const std::string name =
      fmt::format("layer {}, the first on whole samples, ", model.layers[partition.whole_from].name);
  if (batch % ways != 0)
    return name + fmt::format("needs a multiple of {} samples for {} devices, got {}", ways, ways, batch);
  for (std::size_t i = partition.whole_from; i < model.layers.size(); ++i) {
    for (const int input : model.layers[i].inputs) {
      const bool crosses = input < static_cast<int>(partition.whole_from);
      if (crosses && (i != partition.whole_from || input < 0))
        return name + "is not the only layer that reads partitioned samples";
    }
  }
  if (model.layers[partition.whole_from].inputs.size() != 1) return name + "has several inputs";
  int source = model.layers[partition.whole_from].inputs.front();
  while (source != kNetworkInput && !is_map(model.layers[source].output, partition.parts))
    source = model.layers[source].inputs.front();
  const Shape& map = source == kNetworkInput ? model.input : model.layers[source].output;
  for (std::size_t i = 0; i < partition.parts.size(); ++i) {
    if (map[i + 1] % partition.parts[i] != 0) return name + "reads parts of unequal size";
  }
  return "";
}

}  // namespace

std::string layer_kernel_problem(const Model& model, const SpatialPartition& partition, LocalFilters held) {
  for (std::size_t i = 0; i < model.layers.size() && partition.splits(i); ++i) {
    for (int device = 0; device < device_count(partition.parts); ++device) {
      std::string problem = layer_problem(model, partition, i, device, held);
      if (!problem.empty()) return problem;
    }
  }
  return "";
}

std::string kernel_problem(const Model& model, const SpatialPartition& partition, std::int64_t batch) {
  const std::string problem = layer_kernel_problem(model, partition, LocalFilters::all);
  return problem.empty() ? redistribution_problem(model, partition, batch) : problem;
}

}  // namespace stepcast
