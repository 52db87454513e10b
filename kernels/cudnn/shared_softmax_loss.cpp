#include "kernels/cudnn/kinds.hpp"
#include "kernels/cudnn/loss_layer.hpp"
#include "kernels/cudnn/shared_loss.hpp"

namespace stepcast::cudnn {
namespace {

/// softmax_cross_entropy over classes that are dealt out over ranks. Of every row the sum of all exponentials
/// and the target's score are two numbers that are summed over the ranks. Exponentials are fp32 at every
/// precision, and taken of the scores as they are: no rank knows the greatest of a row, and a sum does not
/// tell it. Scores above 88 are infinite.
class SharedSoftmaxLoss final : public LossLayer {
 public:
  SharedSoftmaxLoss(std::shared_ptr<Device> device, const LayerSite& site)
      : LossLayer(std::move(device), site, rows_of(site)),
        exponentials_(float_scratch(source_.shape())),
        sums_(float_scratch({2 * rows()})) {
    share_output(exponentials_);
    forward_.emplace_back([this] {
      shared_loss_sums(shape(), source_.data(), target_values(), numbers(exponentials_), numbers(sums_),
                       stream());
      if (!coupled_) finish(Pass::forward);
    });
  }

  std::span<float> summed(Pass pass) override {
    if (pass != Pass::forward) return {};
    return {numbers(sums_), sums_.elements()};
  }
  void couple() override { coupled_ = true; }
  void finish(Pass pass) override {
    if (pass != Pass::forward) return;
    shared_loss_value(rows(), site().loss_weight, numbers(sums_), loss_value(), stream());
  }

 private:
  static float* numbers(const CudnnTensor& tensor) { return static_cast<float*>(tensor.data()); }
  std::int64_t rows() const { return static_cast<std::int64_t>(targets_.elements()); }
  SharedRows shape() const {
    const stepcast::Rows& own = site().share->classes;
    return {{rows(), source_.shape().back(), element()}, own.first, own.size()};
  }

  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
    backward_data_.emplace_back([this, dx] {
      shared_loss_backward(shape(), site().loss_weight, numbers(exponentials_), numbers(sums_),
                           target_values(), dx.data(), stream());
    });
  }

  CudnnTensor exponentials_, sums_;
  bool coupled_ = false;
};

}  // namespace

std::unique_ptr<LayerKernel> make_shared_softmax_loss(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<SharedSoftmaxLoss>(std::move(device), site);
}

}  // namespace stepcast::cudnn
