#include "models/kernel_problem.hpp"

#include <fmt/format.h>

#include "models/device_part.hpp"

namespace stepcast {
namespace {

bool is_map(const Shape& shape, const SampleCut& cut) {
  return shape.size() == cut.parts.size() + 1;
}

/// Devices that come before or after along a dimension.
int neighbour(const SampleCut& cut, int device, std::size_t dimension, bool before) {
  int stride = 1;
  for (std::size_t i = dimension + 1; i < cut.parts.size(); ++i) stride *= cut.parts[i];
  return device + (before ? -stride : stride);
}

/// A message whose corners the sender has not: it keeps only those rows of its neighbours that it reads.
bool corner_missing(const Model& model, const SampleCut& cut, std::size_t layer, bool errors, int device) {
  const LayerCut rows = layer_cut(model.layers[layer], cut, grid_place(cut.parts, device));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const DimensionHalo halo =
        dimension_halo(model.layers[layer], i, cut.parts[i], grid_place(cut.parts, device)[i]);
    const Halo& needed = errors ? halo.backward : halo.forward;
    for (const bool before : {true, false}) {
      if ((before ? needed.before : needed.after) == 0) continue;
      const auto box = halo_box(model, cut, layer, errors, device, i, before);
      const int source = neighbour(cut, device, i, before);
      const LayerCut theirs = layer_cut(model.layers[layer], cut, grid_place(cut.parts, source));
      bool corners = false;
      for (std::size_t j = i + 1; j < rows.size(); ++j)
        corners = corners || !within(box[j], errors ? rows[j].out : rows[j].in);
      if (corners && !within(box[i], errors ? theirs[i].reading : theirs[i].read)) return true;
    }
  }
  return false;
}

/// A part whose own windows do not begin with its first row, or end before its last.
bool skips_rows(const Layer& layer, const LayerCut& rows) {
  for (std::size_t i = 0; i < rows.size() && !layer.window.stride.empty(); ++i) {
    const Halo pad = pad_of_own(rows[i]);
    const std::int64_t room = rows[i].in.size() + pad.before + pad.after - layer.window.kernel[i];
    if (pad.before < 0 || room / layer.window.stride[i] + 1 != rows[i].out.size()) return true;
  }
  return false;
}

std::string layer_problem(const Model& model, const SampleCut& cut, std::size_t index, int device) {
  const Layer& layer = model.layers[index];
  const LayerCut rows = layer_cut(layer, cut, grid_place(cut.parts, device));
  if (layer.kind == LayerKind::reshape && is_map(layer.output, cut))
    return fmt::format("layer {} reshapes a cut map into another", layer.name);
  const std::string name = fmt::format("layer {} ({}) ", layer.name, to_string(layer.kind));
  if (!crosses_cut(layer, cut)) return skips_rows(layer, rows) ? name + "skips rows at the cut" : "";
  if (layer.kind != LayerKind::convolution && layer.kind != LayerKind::average_pool &&
      layer.kind != LayerKind::max_pool)
    return name + "reads rows of a neighbour";
  for (const CutRows& one : rows) {
    if (one.reading.size() <= 0 || (layer.kind == LayerKind::convolution && one.pad_in.before < 0))
      return name + "skips rows at the cut";
  }
  for (const bool errors : {false, true}) {
    if (corner_missing(model, cut, index, errors, device))
      return name + "needs a corner that its neighbour does not read itself";
  }
  return "";
}

/// Whole samples are dealt out in equal pieces.
std::string dealing_problem(const Model& model, const SampleCut& cut, std::int64_t batch) {
  if (cut.whole_from == 0 || cut.whole_from >= model.layers.size()) return "";
  const int ways = device_count(cut.parts);
  const std::string name =
      fmt::format("layer {}, from which on samples are whole, ", model.layers[cut.whole_from].name);
  if (batch % ways != 0) return name + fmt::format("gets {} samples for {} devices", batch, ways);
  for (std::size_t i = cut.whole_from; i < model.layers.size(); ++i) {
    for (const int input : model.layers[i].inputs) {
      const bool crosses = input < static_cast<int>(cut.whole_from);
      if (crosses && (i != cut.whole_from || input < 0)) return name + "is not the only one that reads a cut";
    }
  }
  if (model.layers[cut.whole_from].inputs.size() != 1) return name + "reads several";
  int source = model.layers[cut.whole_from].inputs.front();
  while (!is_map(model.layers[static_cast<std::size_t>(source)].output, cut))
    source = model.layers[static_cast<std::size_t>(source)].inputs.front();
  const Shape& map = model.layers[static_cast<std::size_t>(source)].output;
  for (std::size_t i = 0; i < cut.parts.size(); ++i) {
    if (map[i + 1] % cut.parts[i] != 0) return name + "reads parts of unequal size";
  }
  return "";
}

}  // namespace

std::string kernel_problem(const Model& model, const SampleCut& cut, std::int64_t batch) {
  for (std::size_t i = 0; i < model.layers.size() && cut.cuts(i); ++i) {
    for (int device = 0; device < device_count(cut.parts); ++device) {
      const std::string problem = layer_problem(model, cut, i, device);
      if (!problem.empty()) return problem;
    }
  }
  return dealing_problem(model, cut, batch);
}

}  // namespace stepcast
