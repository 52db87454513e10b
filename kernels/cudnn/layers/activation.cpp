#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/network/dropout_mask.hpp"

namespace stepcast::cudnn {
namespace {

std::int64_t count(const CudnnTensor& tensor) {
  return static_cast<std::int64_t>(tensor.elements());
}

/// An element-wise activation, out of place, in the layout of the input. A ReLU that a batch norm computes
/// passes on what it is given.
class ActivationLayer final : public CudnnLayer {
 public:
  ActivationLayer(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        activation_{layer().kind,
                    layer().kind == LayerKind::relu ? 0.f : static_cast<float>(layer().coefficient)},
        source_(reordered(forward_, input(), input_order())) {
    if (site.computed_by != nullptr) {
      share_output(source_);
      return;
    }
    make_output(source_.shape(), source_.order());
    forward_.emplace_back([this, y = result().data()] {
      activation_forward(activation_, source_.data(), y, element(), count(source_), stream());
    });
  }

 private:
  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dy = output_gradient(backward_data_, source_.order());
    if (site().computed_by != nullptr) return share_input_gradient(dy);
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

namespace {

/// Drops a share of the elements, with a new mask every step. A captured graph repeats the mask of its
/// capture.
class Dropout final : public CudnnLayer {
 public:
  Dropout(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site), source_(reordered(forward_, input(), input_order())) {
    const CudnnTensor& output = make_output(source_.shape(), source_.order());
    forward_.emplace_back([this, y = output.data(), n = static_cast<std::int64_t>(output.elements())] {
      dropout(mask(step_), source_.data(), y, element(), n, stream());
      ++step_;
    });
  }

 private:
  DropoutMask mask(std::uint32_t step) const {
    const double share = layer().coefficient;
    return {dropout_key(site().seed, site().index, step), dropout_threshold(share),
            share >= 1 ? 0.f : static_cast<float>(1 / (1 - share))};
  }

  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dy = output_gradient(backward_data_, source_.order());
    const CudnnTensor dx = make_input_gradient(source_.shape(), source_.order());
    backward_data_.emplace_back([this, dy, dx, n = static_cast<std::int64_t>(dx.elements())] {
      dropout(mask(step_ - 1), dy.data(), dx.data(), element(), n, stream());
    });
  }

  CudnnTensor source_;
  std::uint32_t step_ = 0;
};

}  // namespace

std::unique_ptr<LayerKernel> make_dropout(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Dropout>(std::move(device), site);
}

}  // namespace stepcast::cudnn
