#include "kernels/cudnn/layers/spatial_layer.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/cudnn/layers/windows.hpp"
#include "kernels/network/device_memory.hpp"

namespace stepcast::cudnn {
namespace {

std::vector<stepcast::Rows> common(const std::vector<stepcast::Rows>& a,
                                   const std::vector<stepcast::Rows>& b) {
  std::vector<stepcast::Rows> both;
  for (std::size_t i = 0; i < a.size(); ++i) both.push_back(common(a[i], b[i]));
  return both;
}

/// Layout of a box of rows in a map or a message: strides of sample, channel and each dimension, and the
/// offset of the first element.
struct BoxLayout {
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
};

BoxLayout layout_in(const PartialMap& map, const std::vector<stepcast::Rows>& box) {
  BoxLayout layout{map.tensor.strides()};
  for (std::size_t i = 0; i < box.size(); ++i) {
    const std::int64_t before = map.before.empty() ? 0 : map.before[i];
    layout.offset += (box[i].first - map.rows[i].first + before) * layout.strides[i + 2];
  }
  return layout;
}

/// Layout of a part of the box of rows that a message holds.
BoxLayout layout_in(const std::vector<stepcast::Rows>& message, std::int64_t channels,
                    const std::vector<stepcast::Rows>& part) {
  std::vector<std::int64_t> sizes{1};
  for (const stepcast::Rows& one : message) sizes.push_back(one.size());
  sizes.push_back(channels);
  const std::vector<std::int64_t> strides = row_major_strides(sizes);
  BoxLayout layout{{strides.front(), 1}};
  for (std::size_t i = 0; i < part.size(); ++i) {
    layout.strides.push_back(strides[i + 1]);
    layout.offset += (part[i].first - message[i].first) * strides[i + 1];
  }
  return layout;
}

/// Writes values to the last dimensions of a box.
template <class Values>
void set_last(const Values& values, std::array<std::int64_t, kMoveDims>& sides) {
  std::copy(values.begin(), values.end(), sides.end() - values.size());
}

Move move_box(const PartialMap& map, const std::vector<stepcast::Rows>& box, const BoxLayout& from,
              const BoxLayout& to) {
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

Move move_rows(const PartialMap& from, const PartialMap& to) {
  const std::vector<stepcast::Rows> both = common(from.rows, to.rows);
  Move move = move_box(from, both, layout_in(from, both), layout_in(to, both));
  move.from_element = from.tensor.element();
  move.to_element = to.tensor.element();
  return move;
}

Move rows_to_message(const PartialMap& from, const std::vector<stepcast::Rows>& box) {
  const std::vector<stepcast::Rows> part = common(from.rows, box);
  Move move = move_box(from, part, layout_in(from, part), layout_in(box, from.tensor.shape()[1], part));
  move.from_element = from.tensor.element();
  return move;
}

Move message_to_rows(const std::vector<stepcast::Rows>& box, const PartialMap& to) {
  const std::vector<stepcast::Rows> part = common(to.rows, box);
  Move move = move_box(to, part, layout_in(box, to.tensor.shape()[1], part), layout_in(to, part));
  move.to_element = to.tensor.element();
  return move;
}

SpatialLayer::SpatialLayer(std::shared_ptr<Device> device, const LayerSite& site)
    : CudnnLayer(std::move(device), site), rows_(*site.rows) {
  if (site.separate_border)
    throw InputError(
        "strategy.halo_overlap: kernels on GPUs compute interior and border in one call; set halo_overlap: "
        "false");
}

/// Packs received rows of neighbours first and own rows over them, because the extended map may still hold
/// own rows of the last step.
void SpatialLayer::pack_halo(Pass pass, const std::vector<stepcast::Rows>& box, float* message) {
  const auto& [own, extended] = halo(pass);
  if (!holds(own.rows, box))
    move_elements(rows_to_message(extended, box), extended.tensor.data(), message, stream());
  move_elements(rows_to_message(own, box), own.tensor.data(), message, stream());
}

void SpatialLayer::unpack_halo(Pass pass, const std::vector<stepcast::Rows>& box, const float* message) {
  const PartialMap& extended = halo(pass).extended;
  move_elements(message_to_rows(box, extended), message, extended.tensor.data(), stream());
}

void SpatialLayer::prepare_halo(Pass pass) {
  if (pass != Pass::backward_data) return;
  for (const auto& step : gradient_sum_steps_) step();
  prepared_ = true;
}

std::vector<stepcast::Rows> SpatialLayer::rows(stepcast::Rows ShardRows::*which) const {
  std::vector<stepcast::Rows> all;
  for (const ShardRows& one : rows_) all.push_back(one.*which);
  return all;
}

std::vector<std::int64_t> SpatialLayer::pads_before(Halo ShardRows::*which) const {
  std::vector<std::int64_t> pads;
  for (const ShardRows& one : rows_) pads.push_back((one.*which).before);
  return pads;
}

Shape SpatialLayer::map_shape(std::int64_t channels, stepcast::Rows ShardRows::*which,
                              Halo ShardRows::*pad) const {
  Shape shape{batch(), channels};
  for (const ShardRows& one : rows_) {
    const Halo more = pad == nullptr ? Halo{} : one.*pad;
    shape.push_back(more.before + (one.*which).size() + more.after);
  }
  return shape;
}

void SpatialLayer::copy_rows(Steps& steps, const PartialMap& from, const PartialMap& to) {
  steps.emplace_back([this, from = from.tensor, to = to.tensor, move = move_rows(from, to)] {
    move_elements(move, from.data(), to.data(), stream());
  });
}

void SpatialLayer::gather_input(const PartialMap& read) {
  halo_forward_ = {{input(), rows(&ShardRows::in)}, read};
  copy_rows(forward_, halo_forward_.own, read);
}

void SpatialLayer::gather_output_gradient(const PartialMap& errors) {
  halo_backward_ = {{output_gradient(gradient_sum_steps_, result().order()), rows(&ShardRows::out)}, errors};
  backward_data_.emplace_back([this] {
    if (!prepared_) prepare_halo(Pass::backward_data);
    prepared_ = false;
  });
  copy_rows(backward_data_, halo_backward_.own, errors);
}

namespace {

/// A convolution of which this device computes some rows of the output and, in the backward pass, some rows
/// of the input's gradient. Both are cuDNN calls without padding. The forward call reads the rows that the
/// device's own outputs need, with zeros beyond the whole map; the backward call reads the gradients of all
/// outputs that read the device's own rows.
class SpatialConvolution final : public ConvolutionLayer<SpatialLayer> {
 public:
  SpatialConvolution(std::shared_ptr<Device> device, const LayerSite& site)
      : ConvolutionLayer(std::move(device), site),
        read_{scratch(map_shape(layer().input.front(), &ShardRows::read, &ShardRows::pad), order()),
              rows(&ShardRows::read), pads_before(&ShardRows::pad)} {
    make_output(batched(layer().output), order());
    gather_input(read_);
    call_ = describe_call(*this->device(), read_.tensor, result(), shape());
    compute_forward(call_, read_.tensor);
  }

 private:
  ConvolutionShape shape() const {
    return shape_padded_by(std::vector<std::int64_t>(layer().window.kernel.size(), 0));
  }

  void connect() override {
    if (wanted()) connect_data();
    compute_weights(call_, read_.tensor);  // from the device's own outputs
  }

  /// A map for the input rows that the windows of the `reading` outputs cover. The device's own rows among
  /// them are kept; own rows that no window reads stay zero.
  PartialMap covered() const {
    std::vector<stepcast::Rows> rows_of;
    Shape dims{batch(), layer().input.front()};
    const std::vector<stepcast::Rows> in = rows(&ShardRows::in), reading = rows(&ShardRows::reading);
    const std::vector<std::int64_t> before = pads_before(&ShardRows::pad_in);
    for (std::size_t d = 0; d < in.size(); ++d) {
      const std::int64_t first = in[d].first - before[d];
      dims.push_back((reading[d].size() - 1) * layer().window.stride[d] + layer().window.kernel[d]);
      rows_of.push_back({first, first + dims.back()});
    }
    return {scratch(dims, order()), rows_of};
  }

  void connect_data() {
    const PartialMap errors{scratch(map_shape(filter()[0], &ShardRows::reading), order()),
                            rows(&ShardRows::reading)};
    const PartialMap all = covered();
    gather_output_gradient(errors);
    back_call_ = describe_call(*device(), all.tensor, errors.tensor, shape());
    const TimedChoice how = fastest_backward_data(*device(), back_call_, all.tensor.data());
    note(backward_data_name(how));
    backward_data_.emplace_back([this, errors, all, how] {
      convolve_back_data(*device(), back_call_, how, weights(), errors.tensor.data(), all.tensor.data());
    });
    copy_rows(backward_data_, all, {make_input_gradient(input().shape(), order()), rows(&ShardRows::in)});
  }

  PartialMap read_;
  ConvolutionCall call_, back_call_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_spatial_convolution(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<SpatialConvolution>(std::move(device), site);
}

namespace {

/// A pooling layer whose windows read rows of neighbours. The backward pass computes the gradient of all rows
/// that the windows read and keeps the device's own rows. A mean does so because each window must divide by
/// its full number of elements. A maximum also computes, in the forward pass, the neighbours' windows that
/// read own rows, whose positions of the maximum the backward pass needs.
class SpatialPool final : public SpatialLayer {
 public:
  SpatialPool(std::shared_ptr<Device> device, const LayerSite& site)
      : SpatialLayer(std::move(device), site),
        largest_(layer().kind == LayerKind::max_pool),
        order_(image_order(batched(layer().output))),
        read_{scratch(map(&ShardRows::read), order_), rows(&ShardRows::read)} {
    const PartialMap own{make_output(batched(layer().output), order_), rows(&ShardRows::out)};
    // Rows of the output that the forward pass computes.
    const PartialMap result =
        largest_ ? PartialMap{scratch(map(&ShardRows::reading), order_), rows(&ShardRows::reading)} : own;
    // 16 bits per index: two indices per float.
    if (largest_) taps_ = float_scratch({(result.tensor.elements() + 1) / 2});
    gather_input(read_);
    forward_.emplace_back([this, y = result.tensor, shape = shape_of(read_, result, &ShardRows::pad)] {
      pool_forward(shape, read_.tensor.data(), y.data(), taps(), element(), stream());
    });
    if (largest_) copy_rows(forward_, result, own);
  }

 private:
  Shape map(stepcast::Rows ShardRows::*which) const { return map_shape(layer().input.front(), which); }
  std::uint16_t* taps() const { return static_cast<std::uint16_t*>(taps_.data()); }

  PoolShape shape_of(const PartialMap& from, const PartialMap& to, Halo ShardRows::*pad) const {
    return pool_shape(layer(), pads_before(pad), from.tensor, to.tensor);
  }

  void connect() override {
    if (!wanted()) return;
    const PartialMap errors{scratch(map(&ShardRows::reading), order_), rows(&ShardRows::reading)};
    const PartialMap all{scratch(map(&ShardRows::read_back), order_), rows(&ShardRows::read_back)};
    gather_output_gradient(errors);
    backward_data_.emplace_back([this, errors, all, shape = shape_of(all, errors, &ShardRows::pad_back)] {
      pool_backward(shape, errors.tensor.data(), all.tensor.data(), taps(), element(), stream());
    });
    copy_rows(backward_data_, all, {make_input_gradient(input().shape(), order_), rows(&ShardRows::in)});
  }

  bool largest_;
  Order order_;
  PartialMap read_;
  CudnnTensor taps_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_spatial_pool(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<SpatialPool>(std::move(device), site);
}

}  // namespace stepcast::cudnn
