#include <algorithm>
#include <cfloat>
#include <cmath>

#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {
namespace {

/// Losses over elements, with x the input, t the target and n elements: mean_squared_error is the mean of (x
/// - t)^2, with gradient 2 (x - t) / n; sigmoid_cross_entropy is the mean of max(x, 0) - x t + log(1 +
/// exp(-|x|)), with gradient (sigmoid(x) - t) / n.
class ElementLoss final : public OnednnLayer {
 public:
  ElementLoss(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        layout_(plain(input().shape())),
        source_(static_cast<const float*>(reordered(forward_, input().memory(), layout_).get_data_handle())),
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
  double double_elements() const { return elements_; }

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
    return site().loss_weight;
  }

  void connect() override {
    if (!wanted()) return;
    backward_data_.emplace_back([this, gradient = make_input_gradient(layout_).data()] {
      const float* t = targets_.data();
      const float scale = weight() * (squared() ? 2.f : 1.f) / elements_;
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

namespace {

/// Softmax over the last dimension, then the mean over all rows of -log p[class]. Targets are class indices.
class SoftmaxLoss final : public OnednnLayer {
 public:
  SoftmaxLoss(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        layout_(row_layout(input().desc())),
        source_(reordered(forward_, input().memory(), layout_)),
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
      sum -= std::log(
          std::max(p, FLT_MIN));  // a probability that underflows counts as the smallest normal float
    }
    return site().loss_weight * sum / rows_;
  }

  float weight() const { return site().loss_weight; }

  void connect() override {
    if (!wanted()) return;
    backward_data_.emplace_back([this, gradient = make_input_gradient(layout_).data()] {
      const float scale = weight() / rows_;
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

namespace {

/// softmax_cross_entropy over classes that are partitioned over ranks (Megatron-LM's vocab-parallel cross
/// entropy). Each rank computes the exponentials of its own classes; per row, two numbers are all-reduced:
/// the sum of exponentials and the target's score. Elements of a row beyond the rank's own classes are
/// padding and ignored. The row's maximum is not subtracted before the exponential, as a softmax on one rank
/// does, because no rank knows it and a sum does not yield it. Exponentials of scores above 88 are infinite
/// in fp32.
class VocabParallelLoss final : public OnednnLayer {
 public:
  VocabParallelLoss(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        layout_(row_layout(input().desc())),
        scores_(static_cast<const float*>(reordered(forward_, input().memory(), layout_).get_data_handle())),
        width_(input().shape().back()),
        rows_(element_count(input().shape()) / width_),
        sums_(2 * rows_),
        targets_(this->library(), with_row_length(layout_, 1)) {
    exponentials_ = make_output(layout_).data();
    forward_.emplace_back([this] {
      sum_own();
      if (!sums_deferred_) finish(Pass::forward);
    });
  }

  Tensor* targets() override { return &targets_; }
  double loss() const override { return loss_; }

  std::span<float> partial_sums(Pass pass) override {
    return pass == Pass::forward ? std::span<float>(sums_) : std::span<float>();
  }
  void defer_sums() override { sums_deferred_ = true; }
  void finish(Pass pass) override {
    if (pass != Pass::forward) return;
    double sum = 0;
    for (std::int64_t row = 0; row < rows_; ++row) sum += std::log(exponential_sum(row)) - target_score(row);
    loss_ = site().loss_weight * sum / rows_;
  }

 private:
  const Rows& classes() const { return site().share->classes; }
  float& exponential_sum(std::int64_t row) { return sums_[2 * row]; }
  float& target_score(std::int64_t row) { return sums_[2 * row + 1]; }

  /// Index of the target among the rank's own classes, or -1 if it is another rank's.
  std::int64_t own_target(std::int64_t row) const {
    const auto target = static_cast<std::int64_t>(targets_.data()[row]);
    return target >= classes().first && target < classes().last ? target - classes().first : -1;
  }

  void sum_own() {
#pragma omp parallel for schedule(static)
    for (std::int64_t row = 0; row < rows_; ++row) {
      const float* x = scores_ + row * width_;
      float* e = exponentials_ + row * width_;
      float sum = 0;
      for (std::int64_t i = 0; i < classes().size(); ++i) sum += e[i] = std::exp(x[i]);
      const std::int64_t target = own_target(row);
      exponential_sum(row) = sum;
      target_score(row) = target < 0 ? 0 : x[target];
    }
  }

  void connect() override {
    if (!wanted()) return;
    backward_data_.emplace_back([this, gradient = make_input_gradient(layout_).data()] {
      const float scale = static_cast<float>(site().loss_weight) / rows_;
#pragma omp parallel for schedule(static)
      for (std::int64_t row = 0; row < rows_; ++row) {
        const float* e = exponentials_ + row * width_;
        float* g = gradient + row * width_;
        const float factor = scale / exponential_sum(row);
        for (std::int64_t i = 0; i < classes().size(); ++i) g[i] = factor * e[i];
        if (const std::int64_t target = own_target(row); target >= 0) g[target] -= scale;
      }
    });
  }

  Desc layout_;
  const float* scores_;
  std::int64_t width_, rows_;
  std::vector<float> sums_;  ///< per row: the sum of exponentials and the target's score
  OnednnTensor targets_;
  float* exponentials_ = nullptr;
  double loss_ = 0;
  bool sums_deferred_ = false;
};

}  // namespace

std::unique_ptr<LayerKernel> make_vocab_parallel_loss(std::shared_ptr<Library> library,
                                                      const LayerSite& site) {
  return std::make_unique<VocabParallelLoss>(std::move(library), site);
}

}  // namespace stepcast::onednn
