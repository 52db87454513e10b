#include <algorithm>
#include <cmath>

#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

/// With x the input, t the target and n elements: mean_squared_error is the mean of (x - t)^2, its gradient
/// 2 (x - t) / n; sigmoid_cross_entropy the mean of max(x, 0) - x t + log(1 + exp(-|x|)), its gradient
/// (sigmoid(x) - t) / n.
class ElementLoss final : public OnednnLayer {
 public:
  ElementLoss(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        layout_(plain(input().shape())),
        source_(static_cast<const float*>(arranged(forward_, input().memory(), layout_).get_data_handle())),
        elements_(element_count(input().shape())),
        targets_(this->library(), layout_) {
    make_output(plain({1}));
    forward_.emplace_back([this] {
      loss_ = this->site().loss_weight * (squared() ? squared_error() : cross_entropy()) / double_elements();
    });
  }

  Tensor* targets() override { return &targets_; }
  double loss() const override { return loss_; }

 private:
  bool squared() const { return layer().kind == LayerKind::mean_squared_error; }
  double double_elements() const { return static_cast<double>(elements_); }

  double squared_error() const {
    const float* t = targets_.data();
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (std::int64_t i = 0; i < elements_; ++i) {
      const double difference = source_[i] - t[i];
      sum += difference * difference;
    }
    return sum;
  }

  double cross_entropy() const {
    const float* t = targets_.data();
    double sum = 0;
#pragma omp parallel for schedule(static) reduction(+ : sum)
    for (std::int64_t i = 0; i < elements_; ++i) {
      const float x = source_[i];
      sum += std::max(x, 0.f) - x * t[i] + std::log1p(std::exp(-std::abs(x)));
    }
    return sum;
  }

  float weight() const {
    return static_cast<float>(site().loss_weight);
  }

  void connect() override {
    if (!wanted()) return;
    backward_data_.emplace_back([this, gradient = make_input_gradient(layout_).data()] {
      const float* t = targets_.data();
      const float scale = weight() * (squared() ? 2.f : 1.f) / static_cast<float>(elements_);
      const bool is_squared = squared();
#pragma omp parallel for schedule(static)
      for (std::int64_t i = 0; i < elements_; ++i) {
        const float y = is_squared ? source_[i] : 1 / (1 + std::exp(-source_[i]));
        gradient[i] = scale * (y - t[i]);
      }
    });
  }

  Desc layout_;
  const float* source_;
  std::int64_t elements_;
  OnednnTensor targets_;
  double loss_ = 0;
};

}  // namespace

std::unique_ptr<LayerKernel> make_element_loss(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<ElementLoss>(std::move(library), site);
}

}  // namespace stepcast::onednn
