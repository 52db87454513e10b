#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/cudnn/runtime/windows.hpp"

namespace stepcast::cudnn {

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
    if (shape_.largest) taps_ = float_scratch({(static_cast<std::int64_t>(output.elements()) + 1) / 2});
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
