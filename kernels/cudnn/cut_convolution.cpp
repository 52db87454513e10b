#include "kernels/cudnn/convolution_call.hpp"
#include "kernels/cudnn/cut_layer.hpp"
#include "kernels/cudnn/kinds.hpp"
#include "kernels/cudnn/sums.hpp"

namespace stepcast::cudnn {
namespace {

/// A convolution of which this device computes some rows of the output, and later of the input's error
/// signal. Two calls of cuDNN's without padding: from the rows that its own outputs read, zeros beyond the
/// whole map among them, and, backward, from all outputs that read its own rows.
class CutConvolution final : public CutLayer {
 public:
  CutConvolution(std::shared_ptr<Device> device, const LayerSite& site)
      : CutLayer(std::move(device), site),
        order_(image_order(input().shape())),
        weight_(add_parameter(order_ == Order::channels_last)),
        read_{scratch(map_shape(weight_.shape[1], &CutRows::read, &CutRows::pad), order_),
              rows(&CutRows::read), pads_before(&CutRows::pad)} {
    if (layer().parameters.size() > 1) bias_ = &add_parameter();
    make_output(batched(layer().output), order_);
    gather_input(read_);
    call_ = describe_call(*this->device(), read_.tensor, result(), shape());
    const CudnnTensor w = scratch(weight_.shape);  // the layer's own has no memory yet
    const TimedChoice how =
        fastest_forward(*this->device(), call_, read_.tensor.data(), w.data(), result().data());
    note(forward_name(how));
    shorten(forward_, weight_);
    forward_.emplace_back([this, how] {
      convolve(*this->device(), call_, how, read_.tensor.data(), product_value(weight_), result().data());
    });
    if (bias_ != nullptr) forward_.emplace_back([this] { add_own_bias(); });
  }

 private:
  ConvolutionShape shape() const {
    const std::vector<std::int64_t> none(layer().window.kernel.size(), 0);
    return {weight_.shape, weight_.channels_last, none, layer().window.stride};
  }

  Channels channels() const {
    const std::int64_t k = weight_.shape[0], all = static_cast<std::int64_t>(result().elements());
    if (order_ == Order::channels_last) return {all / k, k, 1, element()};
    return {batch(), k, all / (batch() * k), element()};
  }

  void add_own_bias() {
    const Channels c = channels();
    add_bias(result().data(), bias_->value, element(), c.elements(), c.inner, c.channels, stream());
  }

  void connect() override {
    if (wanted()) connect_data();
    connect_weights();
  }

  /// Rows of the input that the windows of `reading` cover; those of its own among them are kept, others of
  /// its own have no reader and stay zeros.
  RowsMap covered() const {
    std::vector<stepcast::Rows> rows_of;
    Shape dims{batch(), weight_.shape[1]};
    const std::vector<stepcast::Rows> in = rows(&CutRows::in), reading = rows(&CutRows::reading);
    const std::vector<std::int64_t> before = pads_before(&CutRows::pad_in);
    for (std::size_t d = 0; d < in.size(); ++d) {
      const std::int64_t first = in[d].first - before[d];
      dims.push_back((reading[d].size() - 1) * layer().window.stride[d] + layer().window.kernel[d]);
      rows_of.push_back({first, first + dims.back()});
    }
    return {scratch(dims, order_), rows_of};
  }

  void connect_data() {
    const RowsMap errors{scratch(map_shape(weight_.shape[0], &CutRows::reading), order_),
                         rows(&CutRows::reading)};
    const RowsMap all = covered();
    gather_errors(errors);
    back_call_ = describe_call(*device(), all.tensor, errors.tensor, shape());
    const CudnnTensor w = scratch(weight_.shape);
    const TimedChoice how =
        fastest_backward_data(*device(), back_call_, w.data(), errors.tensor.data(), all.tensor.data());
    note(backward_data_name(how));
    backward_data_.emplace_back([this, errors, all, how] {
      convolve_back_data(*device(), back_call_, how, product_value(weight_), errors.tensor.data(),
                         all.tensor.data());
    });
    copy_rows(backward_data_, all, {make_input_gradient(input().shape(), order_), rows(&CutRows::in)});
  }

  /// From its own outputs.
  void connect_weights() {
    const CudnnTensor dy = output_gradient(backward_weights_, order_);
    const CudnnTensor dw = scratch(weight_.shape);
    const TimedChoice how =
        fastest_backward_filter(*device(), call_, read_.tensor.data(), dy.data(), dw.data());
    note(backward_filter_name(how));
    backward_weights_.emplace_back([this, dy, how] {
      convolve_back_filter(*device(), call_, how, read_.tensor.data(), dy.data(), product_gradient(weight_));
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
  RowsMap read_;
  ConvolutionCall call_, back_call_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_cut_convolution(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<CutConvolution>(std::move(device), site);
}

}  // namespace stepcast::cudnn
