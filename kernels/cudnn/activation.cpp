#include "kernels/cudnn/elements.hpp"
#include "kernels/cudnn/kinds.hpp"

namespace stepcast::cudnn {
namespace {

std::int64_t count(const CudnnTensor& tensor) {
  return static_cast<std::int64_t>(tensor.elements());
}

/// Out of place, in the order of the input.
class ActivationLayer final : public CudnnLayer {
 public:
  ActivationLayer(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        activation_{layer().kind,
                    layer().kind == LayerKind::relu ? 0.f : static_cast<float>(layer().coefficient)},
        source_(arranged(forward_, input(), input_order())) {
    make_output(source_.shape(), source_.order());
    forward_.emplace_back([this, y = result().data()] {
      activation_forward(activation_, source_.data(), y, element(), count(source_), stream());
    });
  }

 private:
  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dy = output_gradient(backward_data_, source_.order());
    const CudnnTensor dx = make_input_gradient(source_.shape(), source_.order());
    backward_data_.emplace_back([this, dy, dx] {
      activation_backward(activation_, source_.data(), dy.data(), dx.data(), element(), count(dx), stream());
    });
  }

  Activation activation_;
  CudnnTensor source_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_activation(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<ActivationLayer>(std::move(device), site);
}

}  // namespace stepcast::cudnn
