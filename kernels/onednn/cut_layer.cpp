#include "kernels/onednn/cut_layer.hpp"

#include <algorithm>

#include "core/error.hpp"

namespace stepcast::onednn {
namespace {

using Tag = dnnl::memory::format_tag;

const std::vector<Tag>& layouts(std::size_t dimensions) {
  static const std::vector<Tag> kFlat{Tag::ncw, Tag::nwc, Tag::nCw8c, Tag::nCw16c};
  static const std::vector<Tag> kPlane{Tag::nchw, Tag::nhwc, Tag::nChw8c, Tag::nChw16c};
  static const std::vector<Tag> kSpace{Tag::ncdhw, Tag::ndhwc, Tag::nCdhw8c, Tag::nCdhw16c};
  return dimensions == 3 ? kFlat : dimensions == 4 ? kPlane : kSpace;
}

/// `memory` seen through those rows alone.
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
  for (const Tag tag : layouts(dims.size())) {
    if (Desc(layout.dims(), dnnl::memory::data_type::f32, tag) == layout)
      return {dims, dnnl::memory::data_type::f32, tag};
  }
  throw InputError("a layout that cut maps do not have");
}

MapView view_of(const dnnl::memory& memory, const std::vector<Rows>& rows) {
  const Desc desc = memory.get_desc();
  const auto& blocks = desc.data.format_desc.blocking;
  const bool blocked = desc.data.format_kind == dnnl_blocked && blocks.inner_nblks == 1;
  if (desc.data.format_kind != dnnl_blocked || blocks.inner_nblks > 1 ||
      (blocked && blocks.inner_idxs[0] != 1)) {
    throw InputError("a layout whose blocks are not of channels");
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

void CutLayer::pack_halo(Pass pass, const std::vector<Rows>& box, float* message) {
  pack(box, halo(pass).own, halo(pass).extended, message);
}

void CutLayer::unpack_halo(Pass pass, const std::vector<Rows>& box, const float* message) {
  unpack(box, halo(pass).extended, message);
}

std::vector<Rows> CutLayer::rows(Rows CutRows::*which) const {
  std::vector<Rows> rows;
  for (const CutRows& one : cut_) rows.push_back(one.*which);
  return rows;
}

Shape CutLayer::pads_before(Halo CutRows::*which) const {
  Shape pads;
  for (const CutRows& one : cut_) pads.push_back((one.*which).before);
  return pads;
}

Shape CutLayer::pads_after(Halo CutRows::*which) const {
  Shape pads;
  for (const CutRows& one : cut_) pads.push_back((one.*which).after);
  return pads;
}

void CutLayer::copy_rows(Steps& steps, const dnnl::memory& from, Rows CutRows::*from_rows,
                         const dnnl::memory& to, Rows CutRows::*to_rows) {
  const std::vector<Rows> had = rows(from_rows), wanted = rows(to_rows);
  std::vector<Rows> both;
  for (std::size_t i = 0; i < had.size(); ++i) {
    both.push_back({std::max(had[i].first, wanted[i].first), std::min(had[i].last, wanted[i].last)});
    if (both.back().size() <= 0) return;
  }
  const dnnl::memory source = sub_map(from, had, both), target = sub_map(to, wanted, both);
  call(steps, dnnl::reorder(source, target), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}});
}

void CutLayer::gather_input(const dnnl::memory& read) {
  halo_forward_ = {view_of(input().memory(), rows(&CutRows::in)), view_of(read, rows(&CutRows::read))};
  copy_rows(forward_, input().memory(), &CutRows::in, read, &CutRows::read);
}

void CutLayer::prepare_halo(Pass pass) {
  if (pass != Pass::backward_data) return;
  for (const auto& step : joins_) step();
  prepared_ = true;
}

void CutLayer::gather_errors(const dnnl::memory& errors) {
  const dnnl::memory own = joined_output_gradient(joins_);
  backward_data_.emplace_back([this] {
    if (!prepared_) prepare_halo(Pass::backward_data);
    prepared_ = false;
  });
  halo_backward_ = {view_of(own, rows(&CutRows::out)), view_of(errors, rows(&CutRows::reading))};
  copy_rows(backward_data_, own, &CutRows::out, errors, &CutRows::reading);
}

}  // namespace stepcast::onednn
