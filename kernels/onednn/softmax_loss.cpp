#include <algorithm>
#include <cfloat>
#include <cmath>

#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

/// Softmax over the last dimension, then the mean over all rows of -log p[class]. Targets are class indices.
class SoftmaxLoss final : public OnednnLayer {
 public:
  SoftmaxLoss(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        layout_(has_rows(input().desc()) ? input().desc() : plain(input().shape())),
        source_(arranged(forward_, input().memory(), layout_)),
        classes_(input().shape().back()),
        rows_(element_count(input().shape()) / classes_),
        forward_desc_({dnnl::prop_kind::forward_training, as_matrix(source_).get_desc(), 1}, engine()),
        targets_(this->library(), with_row_length(layout_, 1)) {
    const OnednnTensor& probabilities = make_output(layout_);
    probabilities_ = probabilities.data();
    call(forward_, dnnl::softmax_forward(forward_desc_),
         {{DNNL_ARG_SRC, as_matrix(source_)}, {DNNL_ARG_DST, as_matrix(probabilities.memory())}});
    forward_.emplace_back([this] { loss_ = mean_loss(); });
  }

  Tensor* targets() override { return &targets_; }
  double loss() const override { return loss_; }

 private:
  std::int64_t target(std::int64_t row) const { return static_cast<std::int64_t>(targets_.data()[row]); }

  double mean_loss() const {
    double sum = 0;
    for (std::int64_t row = 0; row < rows_; ++row) {
      const float p = probabilities_[row * classes_ + target(row)];
      sum -= std::log(std::max(p, FLT_MIN));  // a class that underflows counts as the smallest float
    }
    return site().loss_weight * sum / static_cast<double>(rows_);
  }

  float weight() const { return static_cast<float>(site().loss_weight); }

  void connect() override {
    if (!wanted()) return;
    backward_data_.emplace_back([this, gradient = make_input_gradient(layout_).data()] {
      const float scale = weight() / static_cast<float>(rows_);
#pragma omp parallel for schedule(static)
      for (std::int64_t row = 0; row < rows_; ++row) {
        const float* p = probabilities_ + row * classes_;
        float* g = gradient + row * classes_;
        for (std::int64_t i = 0; i < classes_; ++i) g[i] = p[i] * scale;
        g[target(row)] -= scale;
      }
    });
  }

  Desc layout_;
  dnnl::memory source_;
  std::int64_t classes_, rows_;
  dnnl::softmax_forward::primitive_desc forward_desc_;
  OnednnTensor targets_;
  const float* probabilities_ = nullptr;
  double loss_ = 0;
};

}  // namespace

std::unique_ptr<LayerKernel> make_softmax_loss(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<SoftmaxLoss>(std::move(library), site);
}

}  // namespace stepcast::onednn
