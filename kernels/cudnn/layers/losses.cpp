#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/cuda/rows.hpp"
#include "kernels/cudnn/layers/layer.hpp"

namespace stepcast::cudnn {
namespace {

/// A loss whose mean stays on the device until `loss` reads it.
class LossLayer : public CudnnLayer {
 public:
  LossLayer(std::shared_ptr<Device> device, const LayerSite& site, const Shape& target_shape)
      : CudnnLayer(std::move(device), site),
        source_(reordered(forward_, input(), Order::row_major)),
        targets_(this->device(), target_shape, Element::f32),
        loss_(allocate_bytes(sizeof(double), stream())) {}

  Tensor* targets() override { return &targets_; }

  double loss() const override {
    double value = 0;
    check(cudaMemcpyAsync(&value, loss_.get(), sizeof(value), cudaMemcpyDeviceToHost, stream()),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    return value;
  }

 protected:
  const float* target_values() const { return static_cast<const float*>(targets_.data()); }
  double* loss_value() const { return static_cast<double*>(loss_.get()); }

  CudnnTensor source_, targets_;

 private:
  std::shared_ptr<void> loss_;
};

/// Shape of the class indices: one per row of scores.
Shape rows_of(const LayerSite& site) {
  Shape shape = site.inputs.at(0)->shape();
  shape.back() = 1;
  return shape;
}

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
  Rows rows() const { return {targets_.elements(), source_.shape().back(), element()}; }

  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
    backward_data_.emplace_back([this, dx, p = result().data()] {
      softmax_loss_backward(rows(), this->site().loss_weight, p, target_values(), dx.data(), stream());
    });
  }
};

/// mean_squared_error or sigmoid_cross_entropy.
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
            .elements = source_.elements()};
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

namespace {

/// softmax_cross_entropy over classes that are partitioned over ranks. Per row, two numbers are all-reduced:
/// the sum of exponentials and the target's score. Exponentials are fp32 at every precision. The row's
/// maximum is not subtracted first, because no rank knows it and a sum does not yield it; exponentials of
/// scores above 88 are infinite.
class VocabParallelLoss final : public LossLayer {
 public:
  VocabParallelLoss(std::shared_ptr<Device> device, const LayerSite& site)
      : LossLayer(std::move(device), site, rows_of(site)),
        exponentials_(float_scratch(source_.shape())),
        sums_(float_scratch({2 * rows()})) {
    share_output(exponentials_);
    forward_.emplace_back([this] {
      vocab_parallel_sums(shape(), source_.data(), target_values(), float_data(exponentials_),
                          float_data(sums_), stream());
      if (!sums_deferred_) finish(Pass::forward);
    });
  }

  std::span<float> partial_sums(Pass pass) override {
    if (pass != Pass::forward) return {};
    return std::span(float_data(sums_), sums_.elements());
  }
  void defer_sums() override { sums_deferred_ = true; }
  void finish(Pass pass) override {
    if (pass != Pass::forward) return;
    vocab_parallel_value(rows(), site().loss_weight, float_data(sums_), loss_value(), stream());
  }

 private:
  std::int64_t rows() const { return targets_.elements(); }
  VocabShard shape() const {
    const stepcast::Rows& own = site().share->classes;
    return {{rows(), source_.shape().back(), element()}, own.first, own.size()};
  }

  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
    backward_data_.emplace_back([this, dx] {
      vocab_parallel_backward(shape(), site().loss_weight, float_data(exponentials_), float_data(sums_),
                              target_values(), dx.data(), stream());
    });
  }

  CudnnTensor exponentials_, sums_;
  bool sums_deferred_ = false;
};

}  // namespace

std::unique_ptr<LayerKernel> make_vocab_parallel_loss(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<VocabParallelLoss>(std::move(device), site);
}

}  // namespace stepcast::cudnn
