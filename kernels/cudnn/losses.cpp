#include "kernels/cudnn/elements.hpp"
#include "kernels/cudnn/kinds.hpp"
#include "kernels/cudnn/loss_layer.hpp"
#include "kernels/cudnn/rows.hpp"

namespace stepcast::cudnn {
namespace {

/// Softmax over the last dimension, then the mean over all rows of -log p[class]. Targets are class indices.
class SoftmaxLoss final : public LossLayer {
 public:
  SoftmaxLoss(std::shared_ptr<Device> device, const LayerSite& site)
      : LossLayer(std::move(device), site, rows_of(site)) {
    make_output(source_.shape());
    forward_.emplace_back([this, p = result().data()] {
      softmax_loss_forward(rows(), this->site().loss_weight, source_.data(), target_values(), p, loss_value(),
                           stream());
    });
  }

 private:
  Rows rows() const {
    return {static_cast<std::int64_t>(targets_.elements()), source_.shape().back(), element()};
  }

  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
    backward_data_.emplace_back([this, dx, p = result().data()] {
      softmax_loss_backward(rows(), this->site().loss_weight, p, target_values(), dx.data(), stream());
    });
  }
};

/// mean_squared_error and sigmoid_cross_entropy.
class ElementLoss final : public LossLayer {
 public:
  ElementLoss(std::shared_ptr<Device> device, const LayerSite& site)
      : LossLayer(std::move(device), site, site.inputs.at(0)->shape()) {
    make_output({1});
    forward_.emplace_back(
        [this] { element_loss_forward(shape(), source_.data(), target_values(), loss_value(), stream()); });
  }

 private:
  ElementLossShape shape() const {
    return {.squared = layer().kind == LayerKind::mean_squared_error,
            .weight = site().loss_weight,
            .element = element(),
            .elements = static_cast<std::int64_t>(source_.elements())};
  }

  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
    backward_data_.emplace_back(
        [this, dx] { element_loss_backward(shape(), source_.data(), target_values(), dx.data(), stream()); });
  }
};

}  // namespace

std::unique_ptr<LayerKernel> make_softmax_loss(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<SoftmaxLoss>(std::move(device), site);
}

std::unique_ptr<LayerKernel> make_element_loss(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<ElementLoss>(std::move(device), site);
}

}  // namespace stepcast::cudnn
