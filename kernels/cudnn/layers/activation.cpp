#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/network/dropout_mask.hpp"

namespace stepcast::cudnn {
namespace {

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
      activation_forward(activation_, source_.data(), y, element(), source_.elements(), stream());
    });
  }

 private:
  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dy = output_gradient(backward_data_, source_.order());
    if (site().computed_by != nullptr) return share_input_gradient(dy);
    const CudnnTensor dx = make_input_gradient(source_.shape(), source_.order());
    backward_data_.emplace_back([this, dy, dx] {
      activation_backward(activation_, source_.data(), dy.data(), dx.data(), element(), dx.elements(),
                          stream());
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
    forward_.emplace_back([this, y = output.data(), n = output.elements()] {
      dropout(mask(step_), source_.data(), y, element(), n, stream());
      ++step_;
    });
  }

  bool repeats() const override { return false; }

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
    backward_data_.emplace_back([this, dy, dx, n = dx.elements()] {
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

namespace {

/// Sum of all inputs in the layout of the first. The gradient of every input is the gradient of the output,
/// without a copy. If a batch norm computes the sum, that norm has the gradient of the other input, because
/// it is zero where the ReLU after the sum is.
class Add final : public CudnnLayer {
 public:
  Add(std::shared_ptr<Device> device, const LayerSite& site) : CudnnLayer(std::move(device), site) {
    if (site.computed_by != nullptr) {
      share_output(dynamic_cast<CudnnTensor&>(site.computed_by->output()));
      return;
    }
    const CudnnTensor& output = make_output(input().shape(), input_order());
    std::vector<const void*> terms;
    for (std::size_t i = 0; i < this->site().inputs.size(); ++i) {
      terms.push_back(reordered(forward_, input(i), input_order()).data());
    }
    forward_.emplace_back(
        [this, terms, y = output.data(), n = output.elements()] { sum(terms, y, element(), n, stream()); });
  }

  Tensor* input_gradient(std::size_t i) override {
    LayerKernel* norm = site().computed_by;
    if (norm == nullptr || site().inputs.at(i) == &norm->output()) return CudnnLayer::input_gradient(i);
    return norm->input_gradient(1);
  }

 private:
  void connect() override {
    const CudnnTensor gradient = output_gradient(backward_data_, result().order());
    for (std::size_t i = 0; i < site().inputs.size(); ++i) {
      if (wanted(i)) share_input_gradient(gradient, i);
    }
  }
};

}  // namespace

std::unique_ptr<LayerKernel> make_add(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Add>(std::move(device), site);
}

namespace {

/// A view of the input's elements in row-major order; a copy only if channels are innermost or the element
/// type differs.
class Reshape final : public CudnnLayer {
 public:
  Reshape(std::shared_ptr<Device> device, const LayerSite& site) : CudnnLayer(std::move(device), site) {
    share_output(CudnnTensor(reordered(forward_, input(), Order::row_major), batched(layer().output)));
  }

 private:
  void connect() override {
    if (!wanted()) return;
    const CudnnTensor gradient = output_gradient(backward_data_, Order::row_major);
    share_input_gradient(CudnnTensor(gradient, input().shape()));
  }
};

}  // namespace

std::unique_ptr<LayerKernel> make_reshape(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Reshape>(std::move(device), site);
}

}  // namespace stepcast::cudnn
