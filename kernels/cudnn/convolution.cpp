#include "kernels/cudnn/convolution_layer.hpp"
#include "kernels/cudnn/kinds.hpp"

namespace stepcast::cudnn {
namespace {

/// 1-D, 2-D and 3-D convolution. Padding that differs between the sides is done by a copy into a larger
/// image, because cuDNN pads both sides alike.
class Convolution final : public ConvolutionLayer<CudnnLayer> {
 public:
  Convolution(std::shared_ptr<Device> device, const LayerSite& site)
      : ConvolutionLayer(std::move(device), site), source_(padded(arranged(forward_, input(), order()))) {
    make_output(batched(layer().output), order());
    std::vector<std::int64_t> common;
    for (std::size_t d = 0; d < layer().window.kernel.size(); ++d) common.push_back(common_pad(d));
    call_ = describe_call(*this->device(), source_, result(), shape_padded_by(common));
    compute_forward(call_, source_);
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
    const CudnnTensor larger = scratch(shape, order());  // zeros stay zeros
    forward_.emplace_back([this, image, larger, move = inside(image, larger)] {
      move_elements(move, image.data(), larger.data(), stream());
    });
    return larger;
  }

  void connect() override {
    if (wanted()) connect_data();
    compute_weights(call_, source_);
  }

  void connect_data() {
    const CudnnTensor dy = output_gradient(backward_data_, order());
    const CudnnTensor dx = make_input_gradient(input().shape(), order());
    const CudnnTensor larger = pads_by_copy() ? scratch(source_.shape(), order()) : dx;
    const TimedChoice how =
        fastest_backward_data(*device(), call_, weights_for_search().data(), dy.data(), larger.data());
    note(backward_data_name(how));
    backward_data_.emplace_back([this, dy, larger, how] {
      convolve_back_data(*device(), call_, how, weights(), dy.data(), larger.data());
    });
    if (!pads_by_copy()) return;
    Move out = inside(dx, larger);  // and back
    std::swap(out.from_stride, out.to_stride);
    std::swap(out.from_offset, out.to_offset);
    backward_data_.emplace_back(
        [this, larger, dx, out] { move_elements(out, larger.data(), dx.data(), stream()); });
  }

  CudnnTensor source_;
  ConvolutionCall call_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_convolution(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Convolution>(std::move(device), site);
}

}  // namespace stepcast::cudnn
