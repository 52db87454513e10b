#include "kernels/cudnn/cut_layer.hpp"

#include <algorithm>

#include "kernels/box_move.hpp"

namespace stepcast::cudnn {
namespace {

stepcast::Rows common(const stepcast::Rows& a, const stepcast::Rows& b) {
  return {std::max(a.first, b.first), std::min(a.last, b.last)};
}

std::vector<stepcast::Rows> common(const std::vector<stepcast::Rows>& a,
                                   const std::vector<stepcast::Rows>& b) {
  std::vector<stepcast::Rows> both;
  for (std::size_t i = 0; i < a.size(); ++i) both.push_back(common(a[i], b[i]));
  return both;
}

/// A box of rows in a map or a message: strides of sample, channel and each dimension, and its first element.
struct Place {
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
};

Place place_in(const RowsMap& map, const std::vector<stepcast::Rows>& box) {
  Place place{map.tensor.strides()};
  for (std::size_t i = 0; i < box.size(); ++i) {
    const std::int64_t before = map.before.empty() ? 0 : map.before[i];
    place.offset += (box[i].first - map.rows[i].first + before) * place.strides[i + 2];
  }
  return place;
}

/// Of a part of the box that the message holds.
Place place_in(const std::vector<stepcast::Rows>& message, std::int64_t channels,
               const std::vector<stepcast::Rows>& part) {
  std::vector<std::int64_t> sizes{1};
  for (const stepcast::Rows& one : message) sizes.push_back(one.size());
  sizes.push_back(channels);
  const std::vector<std::int64_t> strides = row_major_strides(sizes);
  Place place{{strides.front(), 1}};
  for (std::size_t i = 0; i < part.size(); ++i) {
    place.strides.push_back(strides[i + 1]);
    place.offset += (part[i].first - message[i].first) * strides[i + 1];
  }
  return place;
}

/// The last kMoveDims sides.
template <class Values>
void set_last(const Values& values, std::array<std::int64_t, kMoveDims>& sides) {
  std::copy(values.begin(), values.end(), sides.end() - static_cast<std::ptrdiff_t>(values.size()));
}

Move move_box(const RowsMap& map, const std::vector<stepcast::Rows>& box, const Place& from,
              const Place& to) {
  std::vector<std::int64_t> sizes{map.tensor.shape()[0], map.tensor.shape()[1]};
  for (const stepcast::Rows& one : box) sizes.push_back(std::max<std::int64_t>(0, one.size()));
  Move move;
  set_last(sizes, move.size);
  set_last(from.strides, move.from_stride);
  set_last(to.strides, move.to_stride);
  move.from_offset = from.offset;
  move.to_offset = to.offset;
  return move;
}

bool holds(const std::vector<stepcast::Rows>& outer, const std::vector<stepcast::Rows>& inner) {
  for (std::size_t i = 0; i < inner.size(); ++i) {
    if (!within(inner[i], outer[i])) return false;
  }
  return true;
}

}  // namespace

Move move_rows(const RowsMap& from, const RowsMap& to) {
  const std::vector<stepcast::Rows> both = common(from.rows, to.rows);
  Move move = move_box(from, both, place_in(from, both), place_in(to, both));
  move.from_element = from.tensor.element();
  move.to_element = to.tensor.element();
  return move;
}

Move rows_to_message(const RowsMap& from, const std::vector<stepcast::Rows>& box) {
  const std::vector<stepcast::Rows> part = common(from.rows, box);
  Move move = move_box(from, part, place_in(from, part), place_in(box, from.tensor.shape()[1], part));
  move.from_element = from.tensor.element();
  return move;
}

Move message_to_rows(const std::vector<stepcast::Rows>& box, const RowsMap& to) {
  const std::vector<stepcast::Rows> part = common(to.rows, box);
  Move move = move_box(to, part, place_in(box, to.tensor.shape()[1], part), place_in(to, part));
  move.to_element = to.tensor.element();
  return move;
}

CutLayer::CutLayer(std::shared_ptr<Device> device, const LayerSite& site)
    : CudnnLayer(std::move(device), site), cut_(*site.cut) {}

/// Rows of neighbours from what came, then own ones over them: what lies there of the own rows may be that of
/// the last step.
void CutLayer::pack_halo(Pass pass, const std::vector<stepcast::Rows>& box, float* message) {
  const auto& [own, extended] = halo(pass);
  if (!holds(own.rows, box))
    move_elements(rows_to_message(extended, box), extended.tensor.data(), message, stream());
  move_elements(rows_to_message(own, box), own.tensor.data(), message, stream());
}

void CutLayer::unpack_halo(Pass pass, const std::vector<stepcast::Rows>& box, const float* message) {
  const RowsMap& extended = halo(pass).extended;
  move_elements(message_to_rows(box, extended), message, extended.tensor.data(), stream());
}

void CutLayer::prepare_halo(Pass pass) {
  if (pass != Pass::backward_data) return;
  for (const auto& step : joins_) step();
  prepared_ = true;
}

std::vector<stepcast::Rows> CutLayer::rows(stepcast::Rows CutRows::*which) const {
  std::vector<stepcast::Rows> all;
  for (const CutRows& one : cut_) all.push_back(one.*which);
  return all;
}

std::vector<std::int64_t> CutLayer::pads_before(Halo CutRows::*which) const {
  std::vector<std::int64_t> pads;
  for (const CutRows& one : cut_) pads.push_back((one.*which).before);
  return pads;
}

Shape CutLayer::map_shape(std::int64_t channels, stepcast::Rows CutRows::*which, Halo CutRows::*pad) const {
  Shape shape{batch(), channels};
  for (const CutRows& one : cut_) {
    const Halo more = pad == nullptr ? Halo{} : one.*pad;
    shape.push_back(more.before + (one.*which).size() + more.after);
  }
  return shape;
}

void CutLayer::copy_rows(Steps& steps, const RowsMap& from, const RowsMap& to) {
  steps.emplace_back([this, from = from.tensor, to = to.tensor, move = move_rows(from, to)] {
    move_elements(move, from.data(), to.data(), stream());
  });
}

void CutLayer::gather_input(const RowsMap& read) {
  halo_forward_ = {{input(), rows(&CutRows::in)}, read};
  copy_rows(forward_, halo_forward_.own, read);
}

void CutLayer::gather_errors(const RowsMap& errors) {
  halo_backward_ = {{output_gradient(joins_, result().order()), rows(&CutRows::out)}, errors};
  backward_data_.emplace_back([this] {
    if (!prepared_) prepare_halo(Pass::backward_data);
    prepared_ = false;
  });
  copy_rows(backward_data_, halo_backward_.own, errors);
}

}  // namespace stepcast::cudnn
