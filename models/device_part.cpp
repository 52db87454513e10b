#include "models/device_part.hpp"

#include <algorithm>

#include "models/layer_shapes.hpp"

namespace stepcast {
namespace {

bool is_map(const Shape& shape, const SampleCut& cut) {
  return shape.size() == cut.parts.size() + 1;
}

Rows hull(const Rows& a, const Rows& b) {
  return {std::min(a.first, b.first), std::max(a.last, b.last)};
}

/// Up-sampling by a factor: what an output row reads, and what reads an input row.
void set_repeated(std::int64_t factor, CutRows& rows) {
  rows.read = {rows.out.first / factor, (rows.out.last + factor - 1) / factor};
  rows.reading = {rows.in.first * factor, rows.in.last * factor};
}

/// @param largest  of a max pool, whose backward pass needs the windows that it works out (models/halo.cpp)
void set_windows(const Slide& slide, bool largest, std::int64_t inputs, std::int64_t outputs, CutRows& rows) {
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
}

Shape own_shape(Shape shape, const SampleCut& cut, const std::vector<int>& place) {
  for (std::size_t i = 0; i < cut.parts.size(); ++i)
    shape[i + 1] = part_of(shape[i + 1], cut.parts[i], place[i]).size();
  return shape;
}

void cut_layer(const SampleCut& cut, const std::vector<int>& place, const LayerCut& rows, Layer& layer,
               const Shape& input) {
  const bool map = is_map(layer.output, cut);
  layer.input = input;
  if (map) {
    layer.output = own_shape(layer.output, cut, place);
  } else if (!is_loss(layer.kind)) {
    layer.output = {elements(input)};  // flattened, or element by element after that
  }
  for (std::size_t i = 0; i < rows.size() && !layer.window.stride.empty(); ++i) {
    const Halo pad = pad_of_own(rows[i]);
    layer.window.pad_before[i] = pad.before;
    layer.window.pad_after[i] = pad.after;
  }
}

}  // namespace

LayerCut layer_cut(const Layer& layer, const SampleCut& cut, const std::vector<int>& place) {
  LayerCut found;
  if (!is_map(layer.input, cut) || !is_map(layer.output, cut)) return found;
  for (std::size_t i = 0; i < cut.parts.size(); ++i) {
    CutRows rows;
    rows.in = rows.read = rows.read_back = part_of(layer.input[i + 1], cut.parts[i], place[i]);
    rows.out = rows.reading = part_of(layer.output[i + 1], cut.parts[i], place[i]);
    if (layer.kind == LayerKind::up_sample) {
      set_repeated(layer.window.kernel[i], rows);
    } else if (!layer.window.stride.empty() && cut.parts[i] == 1) {
      rows.pad = rows.pad_in = rows.pad_back = {layer.window.pad_before[i], layer.window.pad_after[i]};
    } else if (!layer.window.stride.empty()) {
      const Slide slide{layer.window.kernel[i], layer.window.stride[i], layer.window.pad_before[i]};
      set_windows(slide, layer.kind == LayerKind::max_pool, layer.input[i + 1], layer.output[i + 1], rows);
    }
    found.push_back(rows);
  }
  return found;
}

bool within(const Rows& inner, const Rows& outer) {
  return inner.first >= outer.first && inner.last <= outer.last;
}

bool crosses_cut(const Layer& layer, const SampleCut& cut) {
  for (int device = 0; device < device_count(cut.parts); ++device) {
    for (const CutRows& rows : layer_cut(layer, cut, grid_place(cut.parts, device))) {
      if (!within(rows.read, rows.in) || !within(rows.reading, rows.out)) return true;
    }
  }
  return false;
}

Halo pad_of_own(const CutRows& rows) {
  return {rows.pad.before + rows.in.first - rows.read.first,
          std::max<std::int64_t>(0, rows.pad.after + rows.read.last - rows.in.last)};
}

DevicePart device_part(const Model& model, const SampleCut& cut, int device) {
  const std::vector<int> place = grid_place(cut.parts, device);
  DevicePart part{model, {}, {}};
  const int ways = device_count(cut.parts);
  if (cut.whole_from > 0) part.model.input = own_shape(model.input, cut, place);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    part.cuts.emplace_back();
    part.share.push_back(1.0 / ways);
    if (!cut.cuts(i)) continue;
    Layer& layer = part.model.layers[i];
    const int from = layer.inputs.front();
    const Shape& input =
        from < 0 ? part.model.input : part.model.layers[static_cast<std::size_t>(from)].output;
    const LayerCut rows = layer_cut(model.layers[i], cut, place);
    if (crosses_cut(model.layers[i], cut)) part.cuts.back() = rows;
    part.share.back() = static_cast<double>(elements(input)) / static_cast<double>(elements(layer.input));
    cut_layer(cut, place, rows, layer, Shape(input));
  }
  return part;
}

std::vector<Rows> halo_box(const Model& model, const SampleCut& cut, std::size_t layer, bool errors,
                           int target, std::size_t dimension, bool from_before) {
  const LayerCut cuts = layer_cut(model.layers[layer], cut, grid_place(cut.parts, target));
  std::vector<Rows> box;
  for (std::size_t i = 0; i < cuts.size(); ++i) {
    const Rows own = errors ? cuts[i].out : cuts[i].in, needed = errors ? cuts[i].reading : cuts[i].read;
    if (i < dimension) box.push_back(own);
    if (i > dimension) box.push_back(hull(own, needed));
    if (i == dimension)
      box.push_back(from_before ? Rows{needed.first, own.first} : Rows{own.last, needed.last});
  }
  return box;
}

}  // namespace stepcast
