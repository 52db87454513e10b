#include <optional>

#include "kernels/cudnn/kinds.hpp"
#include "kernels/cudnn/matrix_product.hpp"
#include "kernels/cudnn/sums.hpp"

namespace stepcast::cudnn {
namespace {

/// y = W x + b for every row of the input: Y = X W^T, dX = dY W, dW = dY^T X. Weights' gradients are fp32
/// from the product itself.
class Dense final : public CudnnLayer {
 public:
  Dense(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        weight_(add_parameter()),
        source_(arranged(forward_, input(), Order::row_major)),
        rows_(static_cast<std::int64_t>(source_.elements()) / weight_.shape[1]) {
    if (layer().parameters.size() > 1) bias_ = &add_parameter();
    Shape to = source_.shape();
    to.back() = outputs();
    make_output(to);
    shorten(forward_, weight_);
    if (bias_ != nullptr) shorten(forward_, *bias_);
    forward_product_.emplace(
        this->device(),
        ProductShape{.a = x(), .b = w(), .c = y(), .b_transposed = Transpose::yes, .bias = bias_ != nullptr});
    forward_.emplace_back([this] {
      forward_product_->run(source_.data(), product_value(weight_), result().data(),
                            bias_ == nullptr ? nullptr : product_value(*bias_));
    });
  }

 private:
  std::int64_t outputs() const { return weight_.shape[0]; }
  std::int64_t inputs() const { return weight_.shape[1]; }
  cudaDataType_t type() const { return device()->cuda_type(); }
  Matrix x() const { return {rows_, inputs(), type()}; }
  Matrix y() const { return {rows_, outputs(), type()}; }
  Matrix w() const { return {outputs(), inputs(), type()}; }

  void connect() override {
    if (wanted()) connect_data();
    connect_weights();
  }

  void connect_data() {
    const CudnnTensor dy = output_gradient(backward_data_, Order::row_major);
    const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
    data_product_.emplace(device(), ProductShape{.a = y(), .b = w(), .c = x()});
    backward_data_.emplace_back(
        [this, dy, dx] { data_product_->run(dy.data(), product_value(weight_), dx.data()); });
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
  std::optional<MatrixProduct> forward_product_, data_product_, weight_product_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_dense(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Dense>(std::move(device), site);
}

}  // namespace stepcast::cudnn
