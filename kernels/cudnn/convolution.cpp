#include "kernels/cudnn/convolution_call.hpp"
#include "kernels/cudnn/kinds.hpp"
#include "kernels/cudnn/sums.hpp"

namespace stepcast::cudnn {
namespace {

/// 1-D, 2-D and 3-D convolution. Padding that differs between the sides is done by a copy into a larger
/// image, because cuDNN pads both sides alike.
class Convolution final : public CudnnLayer {
 public:
  Convolution(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        order_(image_order(input().shape())),
        weight_(add_parameter(order_ == Order::channels_last)),
        source_(padded(arranged(forward_, input(), order_))) {
    if (layer().parameters.size() > 1) bias_ = &add_parameter();
    make_output(batched(layer().output), order_);
    describe_call();
    shorten(forward_, weight_);
    find_forward();
    forward_.emplace_back([this] { compute(); });
    if (bias_ == nullptr) return;
    const Channels c = channels();
    forward_.emplace_back([this, c] {
      add_bias(result().data(), bias_->value, element(), c.elements(), c.inner, c.channels, stream());
    });
  }

 private:
  /// What cuDNN pads itself: the same on both sides.
  std::int64_t common_pad(std::size_t d) const {
    return std::min(layer().window.pad_before[d], layer().window.pad_after[d]);
  }
  bool pads_by_copy() const { return layer().window.pad_before != layer().window.pad_after; }

  /// The box of the image inside its padded copy.
  Move inside(const CudnnTensor& image, const CudnnTensor& larger) const {
    Move move = move_between(image, larger);
    const std::vector<std::int64_t> large = larger.strides();
    std::copy(large.begin(), large.end(), move.to_stride.end() - static_cast<std::ptrdiff_t>(large.size()));
    for (std::size_t d = 0; d < layer().window.kernel.size(); ++d) {
      move.to_offset += (layer().window.pad_before[d] - common_pad(d)) * large[d + 2];
    }
    return move;
  }

  CudnnTensor padded(const CudnnTensor& image) {
    if (!pads_by_copy()) return image;
    Shape shape = image.shape();
    for (std::size_t d = 0; d < layer().window.kernel.size(); ++d) {
      const Window& w = layer().window;
      shape[d + 2] += w.pad_before[d] + w.pad_after[d] - 2 * common_pad(d);
    }
    const CudnnTensor larger = scratch(shape, order_);  // zeros stay zeros
    forward_.emplace_back([this, image, larger, move = inside(image, larger)] {
      move_elements(move, image.data(), larger.data(), stream());
    });
    return larger;
  }

  void describe_call() {
    std::vector<std::int64_t> common;
    for (std::size_t d = 0; d < layer().window.kernel.size(); ++d) common.push_back(common_pad(d));
    call_ = cudnn::describe_call(*device(), source_, result(),
                                 {weight_.shape, weight_.channels_last, common, layer().window.stride});
  }

  void find_forward() {
    const CudnnTensor w = scratch(weight_.shape);  // the layer's own has no memory yet
    how_forward_ = fastest_forward(*device(), call_, source_.data(), w.data(), result().data());
    note(forward_name(how_forward_));
  }

  void compute() const {
    convolve(*device(), call_, how_forward_, source_.data(), product_value(weight_), result().data());
  }

  Channels channels() const {
    const std::int64_t k = weight_.shape[0], all = static_cast<std::int64_t>(result().elements());
    if (order_ == Order::channels_last) return {all / k, k, 1, element()};
    return {batch(), k, all / (batch() * k), element()};
  }

  void connect() override {
    if (wanted()) connect_data();
    connect_weights();
  }

  void connect_data() {
    const CudnnTensor dy = output_gradient(backward_data_, order_);
    const CudnnTensor dx = make_input_gradient(input().shape(), order_);
    const CudnnTensor larger = pads_by_copy() ? scratch(source_.shape(), order_) : dx;
    const CudnnTensor w = scratch(weight_.shape);
    const TimedChoice how = fastest_backward_data(*device(), call_, w.data(), dy.data(), larger.data());
    note(backward_data_name(how));
    backward_data_.emplace_back([this, dy, larger, how] {
      convolve_back_data(*device(), call_, how, product_value(weight_), dy.data(), larger.data());
    });
    if (!pads_by_copy()) return;
    Move out = inside(dx, larger);  // and back
    std::swap(out.from_stride, out.to_stride);
    std::swap(out.from_offset, out.to_offset);
    backward_data_.emplace_back(
        [this, larger, dx, out] { move_elements(out, larger.data(), dx.data(), stream()); });
  }

  void connect_weights() {
    const CudnnTensor dy = output_gradient(backward_weights_, order_);
    const CudnnTensor dw = scratch(weight_.shape);
    const TimedChoice how = fastest_backward_filter(*device(), call_, source_.data(), dy.data(), dw.data());
    note(backward_filter_name(how));
    backward_weights_.emplace_back([this, dy, how] {
      convolve_back_filter(*device(), call_, how, source_.data(), dy.data(), product_gradient(weight_));
    });
    lengthen_gradient(backward_weights_, weight_);
    if (bias_ == nullptr) return;
    backward_weights_.emplace_back([this, dy] {
      const Scratch partial{device()->workspace.data(), device()->workspace.bytes};
      channel_sums(channels(), dy.data(), bias_->gradient, partial, stream());
    });
  }

  Order order_;
  Parameter& weight_;
  Parameter* bias_ = nullptr;
  CudnnTensor source_;
  ConvolutionCall call_;
  TimedChoice how_forward_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_convolution(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Convolution>(std::move(device), site);
}

}  // namespace stepcast::cudnn
