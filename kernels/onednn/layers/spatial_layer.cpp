#include "kernels/onednn/layers/spatial_layer.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/error.hpp"
#include "kernels/onednn/layers/layer.hpp"

namespace stepcast {

namespace {

using Position = std::vector<std::int64_t>;

/// Calls visit(position) for all positions of a box, the last dimension fastest.
template <class Visit>
void for_each_position(const std::vector<Rows>& box, const Visit& visit) {
  Position at;
  for (const Rows& rows : box) {
    if (rows.size() <= 0) return;
    at.push_back(rows.first);
  }
  while (true) {
    visit(at);
    std::size_t i = box.size();
    while (i > 0 && ++at[i - 1] == box[i - 1].last) {
      at[i - 1] = box[i - 1].first;
      --i;
    }
    if (i == 0) return;
  }
}

bool holds(const MapView& map, const Position& at) {
  for (std::size_t i = 0; i < at.size(); ++i) {
    if (at[i] < map.rows[i].first || at[i] >= map.rows[i].last) return false;
  }
  return true;
}

float* at_position(const MapView& map, std::int64_t sample, const Position& at) {
  float* found = map.data + sample * map.sample_stride;
  for (std::size_t i = 0; i < at.size(); ++i) found += (at[i] - map.rows[i].first) * map.strides[i];
  return found;
}

/// Calls visit(memory of the block's first channel, number of channels in it) for each block of channels.
template <class Visit>
void for_each_block(const MapView& map, float* at, const Visit& visit) {
  for (std::int64_t done = 0; done < map.channels; done += map.block, at += map.block_stride)
    visit(at, std::min(map.block, map.channels - done));
}

}  // namespace

void pack(const std::vector<Rows>& box, const MapView& own, const MapView& extended, float* message) {
  for (std::int64_t sample = 0; sample < own.samples; ++sample) {
    for_each_position(box, [&](const Position& at) {
      const MapView& map = holds(own, at) ? own : extended;
      if (!holds(map, at)) throw std::logic_error("pack: this rank does not hold all rows of the box");
      for_each_block(map, at_position(map, sample, at), [&](const float* from, std::int64_t count) {
        message = std::copy_n(from, count, message);
      });
    });
  }
}

void unpack(const std::vector<Rows>& box, const MapView& extended, const float* message) {
  for (std::int64_t sample = 0; sample < extended.samples; ++sample) {
    for_each_position(box, [&](const Position& at) {
      if (holds(extended, at)) {
        const float* from = message;
        for_each_block(extended, at_position(extended, sample, at), [&](float* to, std::int64_t count) {
          std::copy_n(from, count, to);
          from += count;
        });
      }
      message += extended.channels;
    });
  }
}

void add(const std::vector<Rows>& box, const MapView& own, const MapView& extended, const float* message) {
  for (std::int64_t sample = 0; sample < own.samples; ++sample) {
    for_each_position(box, [&](const Position& at) {
      const MapView& map = holds(own, at) ? own : extended;
      if (holds(map, at)) {
        const float* from = message;
        for_each_block(map, at_position(map, sample, at), [&](float* to, std::int64_t count) {
          for (std::int64_t i = 0; i < count; ++i) to[i] += *from++;
        });
      }
      message += own.channels;
    });
  }
}

}  // namespace stepcast

namespace stepcast::onednn {

namespace {

using Tag = dnnl::memory::format_tag;

const std::vector<Tag>& layouts(std::size_t dimensions) {
  static const std::vector<Tag> kFlat{Tag::ncw, Tag::nwc, Tag::nCw8c, Tag::nCw16c};
  static const std::vector<Tag> kPlane{Tag::nchw, Tag::nhwc, Tag::nChw8c, Tag::nChw16c};
  static const std::vector<Tag> kSpace{Tag::ncdhw, Tag::ndhwc, Tag::nCdhw8c, Tag::nCdhw16c};
  return dimensions == 3 ? kFlat : dimensions == 4 ? kPlane : kSpace;
}

/// The `wanted` rows of a map, as a view of the memory that holds `rows` of it.
dnnl::memory sub_map(const dnnl::memory& memory, const std::vector<Rows>& rows,
                     const std::vector<Rows>& wanted) {
  Shape dims = memory.get_desc().dims(), offsets(dims.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    dims[i + 2] = wanted[i].size();
    offsets[i + 2] = wanted[i].first - rows[i].first;
  }
  return {memory.get_desc().submemory_desc(dims, offsets), memory.get_engine(), memory.get_data_handle()};
}

}  // namespace

Shape map_dims(std::int64_t batch, std::int64_t channels, const std::vector<Rows>& rows) {
  Shape dims{batch, channels};
  for (const Rows& one : rows) dims.push_back(one.size());
  return dims;
}

Desc like(const Desc& layout, const Shape& dims) {
  const auto type = static_cast<dnnl::memory::data_type>(layout.data.data_type);
  for (const Tag tag : layouts(dims.size())) {
    if (Desc(layout.dims(), type, tag) == layout) return {dims, type, tag};
  }
  throw InputError("spatial partition: oneDNN chose a layout that is not supported for partitioned maps");
}

MapView view_of(const dnnl::memory& memory, const std::vector<Rows>& rows) {
  const Desc desc = memory.get_desc();
  const auto& blocks = desc.data.format_desc.blocking;
  const bool blocked = desc.data.format_kind == dnnl_blocked && blocks.inner_nblks == 1;
  if (desc.data.format_kind != dnnl_blocked || blocks.inner_nblks > 1 ||
      (blocked && blocks.inner_idxs[0] != 1)) {
    throw InputError(
        "spatial partition: oneDNN chose a layout with blocks of other dimensions than channels");
  }
  MapView view;
  view.data = static_cast<float*>(memory.get_data_handle());
  view.samples = desc.dims()[0];
  view.channels = desc.dims()[1];
  view.sample_stride = blocks.strides[0];
  view.block = blocked ? blocks.inner_blks[0] : blocks.strides[1] == 1 ? view.channels : 1;
  view.block_stride = blocks.strides[1];
  for (std::size_t i = 0; i < rows.size(); ++i) view.strides.push_back(blocks.strides[i + 2]);
  view.rows = rows;
  return view;
}

void SpatialLayer::pack_halo(Pass pass, const std::vector<Rows>& box, float* message) {
  pack(box, halo(pass).own, halo(pass).extended, message);
}

void SpatialLayer::unpack_halo(Pass pass, const std::vector<Rows>& box, const float* message) {
  unpack(box, halo(pass).extended, message);
}

std::vector<Rows> SpatialLayer::rows(Rows ShardRows::*which) const {
  std::vector<Rows> rows;
  for (const ShardRows& one : rows_) rows.push_back(one.*which);
  return rows;
}

Shape SpatialLayer::pads_before(Halo ShardRows::*which) const {
  Shape pads;
  for (const ShardRows& one : rows_) pads.push_back((one.*which).before);
  return pads;
}

Shape SpatialLayer::pads_after(Halo ShardRows::*which) const {
  Shape pads;
  for (const ShardRows& one : rows_) pads.push_back((one.*which).after);
  return pads;
}

void SpatialLayer::copy_rows(Steps& steps, const MapMemory& from, const MapMemory& to,
                             const std::vector<Rows>& box) {
  std::vector<Rows> both;
  for (std::size_t i = 0; i < from.rows.size(); ++i) {
    both.push_back(common(common(from.rows[i], to.rows[i]), box[i]));
    if (both.back().size() <= 0) return;
  }
  const dnnl::memory source = sub_map(from.memory, from.rows, both),
                     target = sub_map(to.memory, to.rows, both);
  call(steps, dnnl::reorder(source, target), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}});
}

void SpatialLayer::gather_input(const dnnl::memory& read) {
  halo_forward_ = {view_of(input().memory(), rows(&ShardRows::in)), view_of(read, rows(&ShardRows::read))};
  copy_rows(forward_, {input().memory(), rows(&ShardRows::in)}, {read, rows(&ShardRows::read)});
}

void SpatialLayer::prepare_halo(Pass pass) {
  if (pass != Pass::backward_data) return;
  for (const auto& step : gradient_sum_steps_) step();
  prepared_ = true;
}

MapMemory SpatialLayer::gather_output_gradient(const dnnl::memory& errors) {
  const MapMemory own{output_gradient(gradient_sum_steps_), rows(&ShardRows::out)};
  backward_data_.emplace_back([this] {
    if (!prepared_) prepare_halo(Pass::backward_data);
    prepared_ = false;
  });
  halo_backward_ = {view_of(own.memory, own.rows), view_of(errors, rows(&ShardRows::reading))};
  copy_rows(backward_data_, own, {errors, rows(&ShardRows::reading)});
  return own;
}

WindowBox SpatialLayer::windows_of(const std::vector<Rows>& outputs, Rows ShardRows::*held) const {
  std::vector<WindowRows> found;
  for (std::size_t i = 0; i < outputs.size(); ++i)
    found.push_back(window_rows(rows_[i].window, outputs[i], rows_[i].*held));
  return WindowBox(found);
}

WindowBox SpatialLayer::windows_reading(const std::vector<Rows>& inputs) const {
  std::vector<WindowRows> found;
  for (std::size_t i = 0; i < inputs.size(); ++i) found.push_back(window_rows_reading(rows_[i], inputs[i]));
  return WindowBox(found);
}

WindowBox::WindowBox(const std::vector<WindowRows>& dimensions) {
  for (const WindowRows& one : dimensions) {
    outputs.push_back(one.outputs);
    read.push_back(one.read);
    pad_before.push_back(one.pad.before);
    pad_after.push_back(one.pad.after);
  }
}

bool holds_rows(const std::vector<Rows>& box) {
  return std::ranges::all_of(box, [](const Rows& rows) { return rows.size() > 0; });
}

}  // namespace stepcast::onednn
