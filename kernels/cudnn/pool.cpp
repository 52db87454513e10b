#include "kernels/cudnn/kinds.hpp"
#include "kernels/cudnn/pool_shape.hpp"

namespace stepcast::cudnn {
namespace {

/// Largest, or mean of the elements inside the image (padding not counted). A kernel of this project: cuDNN's
/// wants equal padding on both sides.
class Pool final : public CudnnLayer {
 public:
  Pool(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site), source_(arranged(forward_, input(), input_order())) {
    const Shape to = batched(layer().output);
    const CudnnTensor& output = make_output(to, image_order(to));
    shape_ = pool_shape(layer(), layer().window.pad_before, source_, output);
    // 16 bits a tap: two taps a float.
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

}  // namespace stepcast::cudnn
