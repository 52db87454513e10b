#include <cmath>

#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

/// softmax_cross_entropy over classes that are dealt out over ranks: each has the exponentials of its own; of
/// every row the sum of all, and the target's score, are two numbers that are summed over the ranks. What the
/// part's rows have beyond its own classes is padding, which counts for nothing.
///
/// Exponentials are taken of the scores as they are: the greatest of a row, which a softmax on one rank takes
/// off first, is known to no rank alone, and a sum does not tell it. Scores above 88 are infinite in fp32.
class SharedSoftmaxLoss final : public OnednnLayer {
 public:
  SharedSoftmaxLoss(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        layout_(has_rows(input().desc()) ? input().desc() : plain(input().shape())),
        scores_(static_cast<const float*>(arranged(forward_, input().memory(), layout_).get_data_handle())),
        width_(input().shape().back()),
        rows_(element_count(input().shape()) / width_),
        sums_(static_cast<std::size_t>(2 * rows_)),
        targets_(this->library(), with_row_length(layout_, 1)) {
    exponentials_ = make_output(layout_).data();
    forward_.emplace_back([this] {
      sum_own();
      if (!coupled_) finish(Pass::forward);
    });
  }

  Tensor* targets() override { return &targets_; }
  double loss() const override { return loss_; }

  std::span<float> summed(Pass pass) override {
    return pass == Pass::forward ? std::span<float>(sums_) : std::span<float>();
  }
  void couple() override { coupled_ = true; }
  void finish(Pass pass) override {
    if (pass != Pass::forward) return;
    double sum = 0;
    for (std::int64_t row = 0; row < rows_; ++row) sum += std::log(exponential_sum(row)) - target_score(row);
    loss_ = site().loss_weight * sum / static_cast<double>(rows_);
  }

 private:
  const Rows& classes() const { return site().share->classes; }
  float& exponential_sum(std::int64_t row) { return sums_[static_cast<std::size_t>(2 * row)]; }
  float& target_score(std::int64_t row) { return sums_[static_cast<std::size_t>(2 * row + 1)]; }

  /// Among the rank's own classes; -1: another rank's.
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
      const float scale = static_cast<float>(site().loss_weight) / static_cast<float>(rows_);
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
  std::vector<float> sums_;  ///< of exponentials, and the target's score, row by row
  OnednnTensor targets_;
  float* exponentials_ = nullptr;
  double loss_ = 0;
  bool coupled_ = false;
};

}  // namespace

std::unique_ptr<LayerKernel> make_shared_softmax_loss(std::shared_ptr<Library> library,
                                                      const LayerSite& site) {
  return std::make_unique<SharedSoftmaxLoss>(std::move(library), site);
}

}  // namespace stepcast::onednn
