#include "kernels/cudnn/cuda/rows.hpp"
#include "kernels/cudnn/cuda/sums.hpp"
#include "kernels/cudnn/layers/layer.hpp"

namespace stepcast::cudnn {
namespace {

/// Normalizes over the last dimension, then applies scale and shift.
class LayerNorm final : public CudnnLayer {
 public:
  LayerNorm(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        scale_(add_parameter()),
        shift_(add_parameter()),
        source_(reordered(forward_, input(), Order::row_major)),
        mean_(float_scratch({rows().count})),
        inverse_(float_scratch({rows().count})) {
    make_output(source_.shape());
    forward_.emplace_back([this, y = result().data()] {
      layer_norm_forward(rows(), source_.data(), scale_.value, shift_.value, y, number(mean_),
                         number(inverse_), stream());
    });
  }

 private:
  static float* number(const CudnnTensor& tensor) { return static_cast<float*>(tensor.data()); }

  Rows rows() const {
    const std::int64_t length = source_.shape().back();
    return {static_cast<std::int64_t>(source_.elements()) / length, length, element()};
  }

  void connect() override {
    Steps& first = wanted() ? backward_data_ : backward_weights_;
    const CudnnTensor dy = output_gradient(first, Order::row_major);
    if (wanted()) {
      const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
      backward_data_.emplace_back([this, dy, dx] {
        layer_norm_backward(rows(), source_.data(), dy.data(), scale_.value, number(mean_), number(inverse_),
                            dx.data(), stream());
      });
    }
    backward_weights_.emplace_back([this, dy] {
      const Channels shape{rows().count, rows().length, 1, element()};
      const Scratch partial{device()->workspace.data(), device()->workspace.bytes};
      layer_norm_parameters(shape, source_.data(), dy.data(), number(mean_), number(inverse_),
                            scale_.gradient, shift_.gradient, partial, stream());
    });
  }

  Parameter &scale_, &shift_;
  CudnnTensor source_, mean_, inverse_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_layer_norm(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<LayerNorm>(std::move(device), site);
}

}  // namespace stepcast::cudnn
