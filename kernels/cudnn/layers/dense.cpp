#include <optional>

#include "kernels/cudnn/cuda/moves.hpp"
#include "kernels/cudnn/cuda/sums.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"

namespace stepcast::cudnn {
namespace {

/// y = W x + b for every row of the input: Y = X W^T, dX = dY W, dW = dY^T X. The products write weight
/// gradients in fp32. Ranks that share the layer all-reduce fp32 numbers at every precision: W x if they
/// share the inputs (b is added after the all-reduce), dX if they share the units.
class Dense final : public CudnnLayer {
 public:
  Dense(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        weight_(add_parameter()),
        source_(reordered(forward_, input(), Order::row_major)),
        rows_(source_.elements() / weight_.shape[1]) {
    if (layer().parameters.size() > 1) bias_ = &add_parameter();
    Shape to = source_.shape();
    to.back() = outputs();
    make_output(to);
    cast_weights(forward_, weight_);
    if (is(LayerShare::Form::rows)) {
      multiply_for_sum();
    } else {
      multiply_with_bias();
    }
  }

  std::span<float> partial_sums(Pass pass) override {
    if (pass == Pass::forward) return floats(output_sum_);
    return pass == Pass::backward_data ? floats(error_sum_) : std::span<float>();
  }
  void defer_sums() override { sums_deferred_ = true; }
  void finish(Pass pass) override {
    if (pass == Pass::backward_data) return bring(error_sum_, errors_);
    if (bias_ != nullptr) {
      add_bias(output_sum_.data(), output_sum_.data(), bias_->value, Element::f32, rows_ * outputs(), 1,
               outputs(), stream());
    }
    bring(output_sum_, result());
  }

 private:
  bool is(LayerShare::Form form) const { return site().share != nullptr && site().share->form == form; }
  std::int64_t outputs() const { return weight_.shape[0]; }
  std::int64_t inputs() const { return weight_.shape[1]; }
  cudaDataType_t type() const { return device()->cuda_type(); }
  Matrix x() const { return {rows_, inputs(), type()}; }
  Matrix y() const { return {rows_, outputs(), type()}; }
  Matrix w() const { return {outputs(), inputs(), type()}; }

  static std::span<float> floats(const CudnnTensor& sum) {
    if (sum.data() == nullptr) return {};
    return std::span(float_data(sum), sum.elements());
  }
  /// An fp32 tensor for an all-reduce: `tensor` itself if it is fp32.
  CudnnTensor sum_for(const CudnnTensor& tensor) const {
    return element() == Element::f32 ? tensor : float_scratch(tensor.shape());
  }
  void bring(const CudnnTensor& sum, const CudnnTensor& to) const {
    if (element() == Element::f32) return;
    convert(sum.data(), Element::f32, to.data(), element(), to.elements(), stream());
  }
  /// Adds the end of a pass for a rank that computes without an all-reduce.
  void finish_alone(Steps& steps, Pass pass) {
    steps.emplace_back([this, pass] {
      if (!sums_deferred_) finish(pass);
    });
  }

  void multiply_with_bias() {
    if (bias_ != nullptr) cast_weights(forward_, *bias_);
    forward_product_.emplace(
        device(),
        ProductShape{.a = x(), .b = w(), .c = y(), .b_transposed = Transpose::yes, .bias = bias_ != nullptr});
    forward_.emplace_back([this] {
      forward_product_->run(source_.data(), weight_operand(weight_), result().data(),
                            bias_ == nullptr ? nullptr : weight_operand(*bias_));
    });
  }

  void multiply_for_sum() {
    output_sum_ = sum_for(result());
    forward_product_.emplace(
        device(),
        ProductShape{
            .a = x(), .b = w(), .c = {rows_, outputs(), CUDA_R_32F}, .b_transposed = Transpose::yes});
    forward_.emplace_back(
        [this] { forward_product_->run(source_.data(), weight_operand(weight_), output_sum_.data()); });
    finish_alone(forward_, Pass::forward);
  }

  void connect() override {
    if (wanted()) connect_data();
    connect_weights();
  }

  void connect_data() {
    const CudnnTensor dy = output_gradient(backward_data_, Order::row_major);
    errors_ = make_input_gradient(source_.shape(), Order::row_major);
    const bool shared = is(LayerShare::Form::columns);
    if (shared) error_sum_ = sum_for(errors_);
    const CudnnTensor dx = shared ? error_sum_ : errors_;
    const Matrix c{rows_, inputs(), shared ? CUDA_R_32F : type()};
    data_product_.emplace(device(), ProductShape{.a = y(), .b = w(), .c = c});
    backward_data_.emplace_back(
        [this, dy, dx] { data_product_->run(dy.data(), weight_operand(weight_), dx.data()); });
    if (shared) finish_alone(backward_data_, Pass::backward_data);
  }

  void connect_weights() {
    const CudnnTensor dy = output_gradient(backward_weights_, Order::row_major);
    weight_product_.emplace(
        device(),
        ProductShape{
            .a = y(), .b = x(), .c = {outputs(), inputs(), CUDA_R_32F}, .a_transposed = Transpose::yes});
    backward_weights_.emplace_back(
        [this, dy] { weight_product_->run(dy.data(), source_.data(), weight_.gradient); });
    if (bias_ == nullptr) return;
    backward_weights_.emplace_back([this, dy] {
      const Channels columns{rows_, outputs(), 1, element()};
      const Scratch partial{device()->workspace.data(), device()->workspace.bytes};
      channel_sums(columns, dy.data(), bias_->gradient, partial, stream());
    });
  }

  Parameter& weight_;
  Parameter* bias_ = nullptr;
  CudnnTensor source_;
  std::int64_t rows_;
  CudnnTensor errors_;
  CudnnTensor output_sum_, error_sum_;  ///< buffers of the all-reduces; without memory if there is none
  bool sums_deferred_ = false;
  std::optional<Matmul> forward_product_, data_product_, weight_product_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_dense(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Dense>(std::move(device), site);
}

}  // namespace stepcast::cudnn
