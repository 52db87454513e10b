#include "kernels/cudnn/layers/windows.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"

namespace stepcast::cudnn {

namespace {

constexpr float kOne = 1, kZero = 0;

/// Sizes as two or three spatial dimensions, which cuDNN requires.
std::vector<int> spatial(const std::vector<std::int64_t>& sizes, int fill) {
  std::vector<int> result(sizes.begin(), sizes.end());
  if (result.size() == 1) result.insert(result.begin(), fill);
  return result;
}

void set_math(const ConvolutionCall& call, cudnnMathType_t math) {
  check(cudnnSetConvolutionMathType(call.convolution.get(), math), "cudnnSetConvolutionMathType");
}

/// Sets the arithmetic with which the chosen algorithm was timed.
void set_math(const ConvolutionCall& call, const TimedChoice& choice) {
  set_math(call, static_cast<cudnnMathType_t>(choice.math));
}

}  // namespace

ConvolutionTensors tensors_of(Element element, const Shape& x, const Shape& y, Order order,
                              const ConvolutionShape& shape) {
  const auto tensor = [&](std::int64_t number, const Shape& sizes, Order stored) {
    return GraphTensor{number, cudnn_type(element), sizes, strides_of(sizes, stored)};
  };
  const auto wide = [](const std::vector<int>& values) {
    return std::vector<std::int64_t>(values.begin(), values.end());
  };
  return {tensor(kX, x, order),
          tensor(kW, as_image(shape.filter), shape.channels_last ? Order::channels_last : Order::row_major),
          tensor(kY, y, order), wide(spatial(shape.pad, 0)), wide(spatial(shape.stride, 1))};
}

namespace {

/// Descriptors for tensors of these shapes, which have at least 4 dimensions, in one layout.
ConvolutionCall describe_shapes(const Device& device, const Shape& x, const Shape& y, Order order,
                                const ConvolutionShape& shape) {
  ConvolutionCall call;
  call.x = describe(device.element(), x, order);
  call.y = describe(device.element(), y, order);
  const Shape dims = as_image(shape.filter);
  const std::size_t each = bytes_of(device.element());
  call.x_bytes = each * element_count(x);
  call.y_bytes = each * element_count(y);
  call.w_bytes = each * element_count(dims);
  const std::vector<int> filter(dims.begin(), dims.end());
  call.w = make_owned<FilterDesc>(cudnnCreateFilterDescriptor, "cudnnCreateFilterDescriptor");
  check(cudnnSetFilterNdDescriptor(call.w.get(), device.cudnn_type(),
                                   shape.channels_last ? CUDNN_TENSOR_NHWC : CUDNN_TENSOR_NCHW, filter.size(),
                                   filter.data()),
        "cudnnSetFilterNdDescriptor");
  const std::vector<int> pad = spatial(shape.pad, 0), stride = spatial(shape.stride, 1);
  const std::vector<int> dilation(pad.size(), 1);
  call.convolution =
      make_owned<ConvolutionDesc>(cudnnCreateConvolutionDescriptor, "cudnnCreateConvolutionDescriptor");
  check(cudnnSetConvolutionNdDescriptor(call.convolution.get(), pad.size(), pad.data(), stride.data(),
                                        dilation.data(), CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
        "cudnnSetConvolutionNdDescriptor");
  const std::int64_t groups = x[1] / shape.filter[1];
  check(cudnnSetConvolutionGroupCount(call.convolution.get(), groups), "cudnnSetConvolutionGroupCount");
  set_math(call, device.cudnn_math());
  call.tensors = tensors_of(device.element(), x, y, order, shape);
  call.geometry = fmt::format("{} to {}, filter {}, stride {}, pad {}, order {}", fmt::join(x, "x"),
                              fmt::join(y, "x"), fmt::join(shape.filter, "x"), fmt::join(stride, "x"),
                              fmt::join(pad, "x"), order == Order::channels_last ? "NHWC" : "NCHW");
  return call;
}

}  // namespace

ConvolutionCall describe_call(const Device& device, const CudnnTensor& x, const CudnnTensor& y,
                              const ConvolutionShape& shape) {
  return describe_shapes(device, as_image(x.shape()), as_image(y.shape()), x.order(), shape);
}

Order convolution_order(const Device& device, const Layer& layer, std::int64_t batch) {
  if (device.options.layout != ImageLayout::nhwc || layer.input.size() != 3) return Order::row_major;
  const Window& window = layer.window;
  Shape x{batch}, y{batch};
  x.insert(x.end(), layer.input.begin(), layer.input.end());
  y.insert(y.end(), layer.output.begin(), layer.output.end());
  std::vector<std::int64_t> common;
  for (std::size_t d = 0; d < window.kernel.size(); ++d) {
    common.push_back(std::min(window.pad_before[d], window.pad_after[d]));
    x[d + 2] += window.pad_before[d] + window.pad_after[d] - 2 * common[d];
  }
  const ConvolutionShape shape{layer.parameters.front().shape, true, common, window.stride};
  const ConvolutionCall call = describe_shapes(device, x, y, Order::channels_last, shape);
  return is_supported(device, call) ? Order::channels_last : Order::row_major;
}

void convolve(const Device& device, const ConvolutionCall& call, const TimedChoice& how, const void* x,
              const void* w, void* y) {
  if (how.plan != nullptr) return run(*how.plan, device, {x, w, y});
  set_math(call, how);
  check(cudnnConvolutionForward(device.dnn.get(), &kOne, call.x.get(), x, call.w.get(), w,
                                call.convolution.get(), static_cast<cudnnConvolutionFwdAlgo_t>(how.algorithm),
                                device.workspace.data(), how.workspace, &kZero, call.y.get(), y),
        "cudnnConvolutionForward");
}

void convolve_back_data(const Device& device, const ConvolutionCall& call, const TimedChoice& how,
                        const void* w, const void* dy, void* dx) {
  if (how.plan != nullptr) return run(*how.plan, device, {dx, w, dy});
  set_math(call, how);
  check(cudnnConvolutionBackwardData(device.dnn.get(), &kOne, call.w.get(), w, call.y.get(), dy,
                                     call.convolution.get(),
                                     static_cast<cudnnConvolutionBwdDataAlgo_t>(how.algorithm),
                                     device.workspace.data(), how.workspace, &kZero, call.x.get(), dx),
        "cudnnConvolutionBackwardData");
}

void convolve_back_filter(const Device& device, const ConvolutionCall& call, const TimedChoice& how,
                          const void* x, const void* dy, void* dw) {
  if (how.plan != nullptr) return run(*how.plan, device, {x, dw, dy});
  set_math(call, how);
  check(cudnnConvolutionBackwardFilter(device.dnn.get(), &kOne, call.x.get(), x, call.y.get(), dy,
                                       call.convolution.get(),
                                       static_cast<cudnnConvolutionBwdFilterAlgo_t>(how.algorithm),
                                       device.workspace.data(), how.workspace, &kZero, call.w.get(), dw),
        "cudnnConvolutionBackwardFilter");
}

namespace {

/// 1-D, 2-D and 3-D convolution. If the padding differs between two sides, the image is copied into a larger
/// one, because cuDNN pads both sides equally.
class Convolution final : public ConvolutionLayer<CudnnLayer> {
 public:
  Convolution(std::shared_ptr<Device> device, const LayerSite& site)
      : ConvolutionLayer(std::move(device), site), source_(padded(reordered(forward_, input(), order()))) {
    make_output(batched(layer().output), order());
    std::vector<std::int64_t> common;
    for (std::size_t d = 0; d < layer().window.kernel.size(); ++d) common.push_back(common_pad(d));
    call_ = describe_call(*this->device(), source_, result(), shape_padded_by(common));
    compute_forward(call_, source_);
  }

 private:
  /// The padding that cuDNN adds: equal on both sides.
  std::int64_t common_pad(std::size_t d) const {
    return std::min(layer().window.pad_before[d], layer().window.pad_after[d]);
  }
  bool pads_by_copy() const { return layer().window.pad_before != layer().window.pad_after; }

  /// The copy of an image into the interior of its padded copy.
  Move inside(const CudnnTensor& image, const CudnnTensor& larger) const {
    Move move = move_between(image, larger);
    const std::vector<std::int64_t> large = larger.strides();
    std::copy(large.begin(), large.end(), move.to_stride.end() - large.size());
    for (std::size_t d = 0; d < layer().window.kernel.size(); ++d) {
      move.to_offset += (layer().window.pad_before[d] - common_pad(d)) * large[d + 2];
    }
    return move;
  }

  CudnnTensor padded(const CudnnTensor& image) {
    if (!pads_by_copy()) return image;
    Shape shape = image.shape();
    for (std::size_t d = 0; d < layer().window.kernel.size(); ++d) {
      const Window& w = layer().window;
      shape[d + 2] += w.pad_before[d] + w.pad_after[d] - 2 * common_pad(d);
    }
    const CudnnTensor larger = scratch(shape, order());  // the padding stays zero
    forward_.emplace_back([this, image, larger, move = inside(image, larger)] {
      move_elements(move, image.data(), larger.data(), stream());
    });
    return larger;
  }

  void connect() override {
    if (wanted()) connect_data();
    compute_weights(call_, source_);
  }

  void connect_data() {
    const CudnnTensor dy = output_gradient(backward_data_, order());
    const CudnnTensor dx = make_input_gradient(input().shape(), order());
    const CudnnTensor larger = pads_by_copy() ? scratch(source_.shape(), order()) : dx;
    const TimedChoice how = fastest_backward_data(*device(), call_, larger.data());
    note(backward_data_name(how));
    backward_data_.emplace_back([this, dy, larger, how] {
      convolve_back_data(*device(), call_, how, weights(), dy.data(), larger.data());
    });
    if (!pads_by_copy()) return;
    Move out = inside(dx, larger);  // the copy back
    std::swap(out.from_stride, out.to_stride);
    std::swap(out.from_offset, out.to_offset);
    backward_data_.emplace_back(
        [this, larger, dx, out] { move_elements(out, larger.data(), dx.data(), stream()); });
  }

  CudnnTensor source_;
  ConvolutionCall call_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_convolution(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Convolution>(std::move(device), site);
}

PoolShape pool_shape(const Layer& layer, const std::vector<std::int64_t>& pad_before, const CudnnTensor& from,
                     const CudnnTensor& to) {
  const Window& w = layer.window;
  const PoolShape shape{.in = five(from.shape(), 1),
                        .out = five(to.shape(), 1),
                        .in_stride = five(from.strides(), 0),
                        .out_stride = five(to.strides(), 0),
                        .kernel = last_three(w.kernel, 1),
                        .stride = last_three(w.stride, 1),
                        .pad = last_three(pad_before, 0),
                        .largest = layer.kind == LayerKind::max_pool};
  if (shape.kernel[0] * shape.kernel[1] * shape.kernel[2] > 65536)
    throw InputError(
        fmt::format("layer {}: kernel: expected at most 65536 elements for pooling on a GPU", layer.name));
  return shape;
}

namespace {

/// Maximum, or mean over the elements inside the image (padding is not counted). Uses a kernel of this
/// project, because cuDNN's requires equal padding on both sides.
class Pool final : public CudnnLayer {
 public:
  Pool(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site), source_(reordered(forward_, input(), input_order())) {
    const Shape to = batched(layer().output);
    const CudnnTensor& output = make_output(to, image_order(to));
    shape_ = pool_shape(layer(), layer().window.pad_before, source_, output);
    // 16 bits per index: two indices per float.
    if (shape_.largest) taps_ = float_scratch({(output.elements() + 1) / 2});
    forward_.emplace_back(
        [this, y = output.data()] { pool_forward(shape_, source_.data(), y, taps(), element(), stream()); });
  }

 private:
  std::uint16_t* taps() const { return static_cast<std::uint16_t*>(taps_.data()); }

  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dy = output_gradient(backward_data_, result().order());
    const CudnnTensor dx = make_input_gradient(source_.shape(), source_.order());
    backward_data_.emplace_back(
        [this, dy, dx] { pool_backward(shape_, dy.data(), dx.data(), taps(), element(), stream()); });
  }

  CudnnTensor source_, taps_;
  PoolShape shape_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_pool(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Pool>(std::move(device), site);
}

namespace {

/// Repeats every element by an integer factor in each dimension.
class UpSample final : public CudnnLayer {
 public:
  UpSample(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site), source_(reordered(forward_, input(), input_order())) {
    const CudnnTensor& output = make_output(batched(layer().output), image_order(batched(layer().output)));
    shape_.in = five(source_.shape(), 1);
    shape_.in_stride = five(source_.strides(), 0);
    shape_.out_stride = five(output.strides(), 0);
    shape_.factor = last_three(layer().window.kernel, 1);
    forward_.emplace_back(
        [this, y = output.data()] { up_sample_forward(shape_, source_.data(), y, element(), stream()); });
  }

 private:
  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dy = output_gradient(backward_data_, result().order());
    const CudnnTensor dx = make_input_gradient(source_.shape(), source_.order());
    backward_data_.emplace_back(
        [this, dy, dx] { up_sample_backward(shape_, dy.data(), dx.data(), element(), stream()); });
  }

  CudnnTensor source_;
  UpSampleShape shape_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_up_sample(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<UpSample>(std::move(device), site);
}

}  // namespace stepcast::cudnn
