#include "kernels/cudnn/convolution_layer.hpp"
#include "kernels/cudnn/cut_layer.hpp"
#include "kernels/cudnn/kinds.hpp"

namespace stepcast::cudnn {
namespace {

/// A convolution of which this device computes some rows of the output, and later of the input's error
/// signal. Two calls of cuDNN's without padding: from the rows that its own outputs read, zeros beyond the
/// whole map among them, and, backward, from all outputs that read its own rows.
class CutConvolution final : public ConvolutionLayer<CutLayer> {
 public:
  CutConvolution(std::shared_ptr<Device> device, const LayerSite& site)
      : ConvolutionLayer(std::move(device), site),
        read_{scratch(map_shape(filter()[1], &CutRows::read, &CutRows::pad), order()), rows(&CutRows::read),
              pads_before(&CutRows::pad)} {
    make_output(batched(layer().output), order());
    gather_input(read_);
    call_ = describe_call(*this->device(), read_.tensor, result(), shape());
    compute_forward(call_, read_.tensor);
  }

 private:
  ConvolutionShape shape() const {
    return shape_padded_by(std::vector<std::int64_t>(layer().window.kernel.size(), 0));
  }

  void connect() override {
    if (wanted()) connect_data();
    compute_weights(call_, read_.tensor);  // from its own outputs
  }

  /// Rows of the input that the windows of `reading` cover; those of its own among them are kept, others of
  /// its own have no reader and stay zeros.
  RowsMap covered() const {
    std::vector<stepcast::Rows> rows_of;
    Shape dims{batch(), filter()[1]};
    const std::vector<stepcast::Rows> in = rows(&CutRows::in), reading = rows(&CutRows::reading);
    const std::vector<std::int64_t> before = pads_before(&CutRows::pad_in);
    for (std::size_t d = 0; d < in.size(); ++d) {
      const std::int64_t first = in[d].first - before[d];
      dims.push_back((reading[d].size() - 1) * layer().window.stride[d] + layer().window.kernel[d]);
      rows_of.push_back({first, first + dims.back()});
    }
    return {scratch(dims, order()), rows_of};
  }

  void connect_data() {
    const RowsMap errors{scratch(map_shape(filter()[0], &CutRows::reading), order()),
                         rows(&CutRows::reading)};
    const RowsMap all = covered();
    gather_errors(errors);
    back_call_ = describe_call(*device(), all.tensor, errors.tensor, shape());
    const TimedChoice how = fastest_backward_data(*device(), back_call_, weights_for_search().data(),
                                                  errors.tensor.data(), all.tensor.data());
    note(backward_data_name(how));
    backward_data_.emplace_back([this, errors, all, how] {
      convolve_back_data(*device(), back_call_, how, weights(), errors.tensor.data(), all.tensor.data());
    });
    copy_rows(backward_data_, all, {make_input_gradient(input().shape(), order()), rows(&CutRows::in)});
  }

  RowsMap read_;
  ConvolutionCall call_, back_call_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_cut_convolution(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<CutConvolution>(std::move(device), site);
}

}  // namespace stepcast::cudnn
