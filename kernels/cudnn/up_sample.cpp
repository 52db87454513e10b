#include <algorithm>

#include "kernels/cudnn/kinds.hpp"
#include "kernels/cudnn/windows.hpp"

namespace stepcast::cudnn {
namespace {

/// Every element repeated by an integer factor a dimension.
class UpSample final : public CudnnLayer {
 public:
  UpSample(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site), source_(arranged(forward_, input(), input_order())) {
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
