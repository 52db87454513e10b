#include "kernels/onednn/layers/spatial_layer.hpp"

#include <algorithm>
#include <stdexcept>

#include "core/error.hpp"
#include "kernels/onednn/layers/layer.hpp"
#include "kernels/onednn/layers/windows.hpp"

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

/// The shape {batch, channels, rows...}.
Shape map_dims(std::int64_t batch, std::int64_t channels, const std::vector<Rows>& rows) {
  Shape dims{batch, channels};
  for (const Rows& one : rows) dims.push_back(one.size());
  return dims;
}

}  // namespace

Desc like(const Desc& layout, const Shape& dims) {
  for (const Tag tag : layouts(dims.size())) {
    if (Desc(layout.dims(), dnnl::memory::data_type::f32, tag) == layout)
      return {dims, dnnl::memory::data_type::f32, tag};
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

void SpatialLayer::copy_rows(Steps& steps, const dnnl::memory& from, Rows ShardRows::*from_rows,
                             const dnnl::memory& to, Rows ShardRows::*to_rows) {
  const std::vector<Rows> had = rows(from_rows), wanted = rows(to_rows);
  std::vector<Rows> both;
  for (std::size_t i = 0; i < had.size(); ++i) {
    both.push_back({std::max(had[i].first, wanted[i].first), std::min(had[i].last, wanted[i].last)});
    if (both.back().size() <= 0) return;
  }
  const dnnl::memory source = sub_map(from, had, both), target = sub_map(to, wanted, both);
  call(steps, dnnl::reorder(source, target), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}});
}

void SpatialLayer::gather_input(const dnnl::memory& read) {
  halo_forward_ = {view_of(input().memory(), rows(&ShardRows::in)), view_of(read, rows(&ShardRows::read))};
  copy_rows(forward_, input().memory(), &ShardRows::in, read, &ShardRows::read);
}

void SpatialLayer::prepare_halo(Pass pass) {
  if (pass != Pass::backward_data) return;
  for (const auto& step : gradient_sum_steps_) step();
  prepared_ = true;
}

void SpatialLayer::gather_output_gradient(const dnnl::memory& errors) {
  const dnnl::memory own = output_gradient(gradient_sum_steps_);
  backward_data_.emplace_back([this] {
    if (!prepared_) prepare_halo(Pass::backward_data);
    prepared_ = false;
  });
  halo_backward_ = {view_of(own, rows(&ShardRows::out)), view_of(errors, rows(&ShardRows::reading))};
  copy_rows(backward_data_, own, &ShardRows::out, errors, &ShardRows::reading);
}

namespace {

/// A convolution of which this device computes some rows of the output and, in the backward pass, some rows
/// of the input's gradient.
class SpatialConvolution final : public ConvolutionLayer<SpatialLayer> {
 public:
  SpatialConvolution(std::shared_ptr<Library> library, const LayerSite& site)
      : ConvolutionLayer(std::move(library), site),
        forward_desc_(convolution(&ShardRows::read, &ShardRows::out, &ShardRows::pad, bias_desc())) {
    make_arrays(forward_desc_);
    read_ = scratch(forward_desc_.src_desc());
    gather_input(read_);
    compute_forward(forward_desc_, read_, output_memory());
  }

 private:
  Shape channels_in(Rows ShardRows::*which) const {
    return map_dims(batch(), layer().input.front(), rows(which));
  }
  Shape channels_out(Rows ShardRows::*which) const { return map_dims(batch(), filters(), rows(which)); }

  dnnl::convolution_forward::primitive_desc convolution(Rows ShardRows::*from, Rows ShardRows::*to,
                                                        Halo ShardRows::*pad, const Desc& bias) const {
    return {{dnnl::prop_kind::forward_training, kDirect, any(channels_in(from)), any(weight_dims()), bias,
             any(channels_out(to)), layer().window.stride, pads_before(pad), pads_after(pad)},
            engine()};
  }

  void connect() override {
    if (wanted()) connect_data();
    compute_weight_gradient({{kDirect, any(channels_in(&ShardRows::read)), any(weight_dims()), bias_desc(),
                              any(channels_out(&ShardRows::out)), layer().window.stride,
                              pads_before(&ShardRows::pad), pads_after(&ShardRows::pad)},
                             engine(),
                             forward_desc_},
                            read_);
  }

  /// The gradient of this device's rows of the input, from all outputs that read them.
  void connect_data() {
    const dnnl::convolution_backward_data::primitive_desc desc(
        {kDirect, any(channels_in(&ShardRows::in)), any(weight_dims()),
         any(channels_out(&ShardRows::reading)), layer().window.stride, pads_before(&ShardRows::pad_in),
         pads_after(&ShardRows::pad_in)},
        engine(), convolution(&ShardRows::in, &ShardRows::reading, &ShardRows::pad_in, Desc()));
    const dnnl::memory errors = scratch(desc.diff_dst_desc());
    gather_output_gradient(errors);
    compute_input_gradient(desc, errors);
  }

  dnnl::convolution_forward::primitive_desc forward_desc_;
  dnnl::memory read_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_spatial_convolution(std::shared_ptr<Library> library,
                                                      const LayerSite& site) {
  return std::make_unique<SpatialConvolution>(std::move(library), site);
}

namespace {

/// A pooling layer whose windows read rows of neighbours. The backward pass computes the gradient of all rows
/// that the windows read and keeps the device's own rows. A mean does so because each window must divide by
/// its full number of elements. A maximum also computes, in the forward pass, the neighbours' windows that
/// read own rows, whose positions of the maximum the backward pass needs.
class SpatialPool final : public SpatialLayer {
 public:
  SpatialPool(std::shared_ptr<Library> library, const LayerSite& site)
      : SpatialLayer(std::move(library), site),
        largest_(layer().kind == LayerKind::max_pool),
        read_(scratch(like(input().desc(), dims(&ShardRows::read)))),
        forward_desc_(pool(read_.get_desc(), any(dims(computed_rows())), &ShardRows::pad)) {
    const Desc all = forward_desc_.dst_desc();
    const OnednnTensor& output = make_output(largest_ ? like(all, dims(&ShardRows::out)) : all);
    const dnnl::memory result = largest_ ? scratch(all) : output.memory();
    gather_input(read_);
    Arguments arguments{{DNNL_ARG_SRC, read_}, {DNNL_ARG_DST, result}};
    if (largest_) arguments[DNNL_ARG_WORKSPACE] = workspace_ = {forward_desc_.workspace_desc(), engine()};
    call(forward_, dnnl::pooling_forward(forward_desc_), arguments);
    if (largest_) copy_rows(forward_, result, computed_rows(), output.memory(), &ShardRows::out);
  }

 private:
  Shape dims(Rows ShardRows::*which) const { return map_dims(batch(), layer().input.front(), rows(which)); }

  /// Rows of the output that the forward pass computes.
  Rows ShardRows::*computed_rows() const { return largest_ ? &ShardRows::reading : &ShardRows::out; }

  dnnl::algorithm algorithm() const {
    return largest_ ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
  }

  dnnl::pooling_forward::primitive_desc pool(const Desc& from, const Desc& to, Halo ShardRows::*pad) const {
    const Window& w = layer().window;
    return {{dnnl::prop_kind::forward_training, algorithm(), from, to, w.stride, w.kernel, pads_before(pad),
             pads_after(pad)},
            engine()};
  }

  void connect() override {
    if (!wanted()) return;
    const Window& w = layer().window;
    const Desc from = like(input().desc(), dims(&ShardRows::read_back));
    const Desc to = like(output_desc(), dims(&ShardRows::reading));
    const dnnl::pooling_backward::primitive_desc desc(
        {algorithm(), from, to, w.stride, w.kernel, pads_before(&ShardRows::pad_back),
         pads_after(&ShardRows::pad_back)},
        engine(), largest_ ? forward_desc_ : pool(from, to, &ShardRows::pad_back));
    const dnnl::memory errors = scratch(to), all = scratch(from);
    gather_output_gradient(errors);
    Arguments arguments{{DNNL_ARG_DIFF_DST, errors}, {DNNL_ARG_DIFF_SRC, all}};
    if (largest_) arguments[DNNL_ARG_WORKSPACE] = workspace_;
    call(backward_data_, dnnl::pooling_backward(desc), arguments);
    const OnednnTensor& result = make_input_gradient(input().desc());
    copy_rows(backward_data_, all, &ShardRows::read_back, result.memory(), &ShardRows::in);
  }

  bool largest_;
  dnnl::memory read_;
  dnnl::pooling_forward::primitive_desc forward_desc_;
  dnnl::memory workspace_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_spatial_pool(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<SpatialPool>(std::move(library), site);
}

}  // namespace stepcast::onednn
