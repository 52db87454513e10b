#include "kernels/onednn/cut_layer.hpp"
#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// A convolution of which this device computes some rows of the output, and later of the input's error
/// signal.
class CutConvolution final : public CutLayer {
 public:
  CutConvolution(std::shared_ptr<Library> library, const LayerSite& site)
      : CutLayer(std::move(library), site),
        weight_dims_(layer().parameters.at(0).shape),
        bias_(layer().parameters.size() > 1),
        forward_desc_(convolution(&CutRows::read, &CutRows::out, &CutRows::pad, bias_desc())) {
    add_parameter(forward_desc_.weights_desc(), plain(weight_dims_));
    if (bias_) add_parameter(bias_desc(), bias_desc());
    const OnednnTensor& output = make_output(forward_desc_.dst_desc());
    read_ = scratch(forward_desc_.src_desc());
    gather_input(read_);
    Arguments arguments{
        {DNNL_ARG_SRC, read_}, {DNNL_ARG_WEIGHTS, parameter(0).value}, {DNNL_ARG_DST, output.memory()}};
    if (bias_) arguments[DNNL_ARG_BIAS] = parameter(1).value;
    call(forward_, dnnl::convolution_forward(forward_desc_), arguments);
  }

 private:
  Desc bias_desc() const { return bias_ ? plain({weight_dims_[0]}) : Desc(); }

  Shape channels_in(Rows CutRows::*which) const { return map_dims(batch(), weight_dims_[1], rows(which)); }
  Shape channels_out(Rows CutRows::*which) const { return map_dims(batch(), weight_dims_[0], rows(which)); }

  dnnl::convolution_forward::primitive_desc convolution(Rows CutRows::*from, Rows CutRows::*to,
                                                        Halo CutRows::*pad, const Desc& bias) const {
    return {{dnnl::prop_kind::forward_training, kDirect, any(channels_in(from)), any(weight_dims_), bias,
             any(channels_out(to)), layer().window.stride, pads_before(pad), pads_after(pad)},
            engine()};
  }

  void connect() override {
    if (wanted()) connect_data();
    connect_weights();
  }

  /// Of its own rows of the input, from all outputs that read them.
  void connect_data() {
    const dnnl::convolution_backward_data::primitive_desc desc(
        {kDirect, any(channels_in(&CutRows::in)), any(weight_dims_), any(channels_out(&CutRows::reading)),
         layer().window.stride, pads_before(&CutRows::pad_in), pads_after(&CutRows::pad_in)},
        engine(), convolution(&CutRows::in, &CutRows::reading, &CutRows::pad_in, Desc()));
    const dnnl::memory errors = scratch(desc.diff_dst_desc());
    gather_errors(errors);
    const dnnl::memory weights = arranged(backward_data_, parameter(0).value, desc.weights_desc());
    call(backward_data_, dnnl::convolution_backward_data(desc),
         {{DNNL_ARG_DIFF_DST, errors},
          {DNNL_ARG_WEIGHTS, weights},
          {DNNL_ARG_DIFF_SRC, make_input_gradient(desc.diff_src_desc()).memory()}});
  }

  /// From its own outputs.
  void connect_weights() {
    const dnnl::convolution_backward_weights::primitive_desc desc(
        {kDirect, any(channels_in(&CutRows::read)), any(weight_dims_), bias_desc(),
         any(channels_out(&CutRows::out)), layer().window.stride, pads_before(&CutRows::pad),
         pads_after(&CutRows::pad)},
        engine(), forward_desc_);
    const bool same_layout = desc.diff_weights_desc() == parameter(0).gradient.get_desc();
    const dnnl::memory result = same_layout ? parameter(0).gradient : scratch(desc.diff_weights_desc());
    Arguments arguments{{DNNL_ARG_DIFF_DST, output_gradient(backward_weights_, desc.diff_dst_desc())},
                        {DNNL_ARG_SRC, arranged(backward_weights_, read_, desc.src_desc())},
                        {DNNL_ARG_DIFF_WEIGHTS, result}};
    if (bias_) arguments[DNNL_ARG_DIFF_BIAS] = parameter(1).gradient;
    call(backward_weights_, dnnl::convolution_backward_weights(desc), arguments);
    if (same_layout) return;
    call(backward_weights_, dnnl::reorder(result, parameter(0).gradient),
         {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, parameter(0).gradient}});
  }

  Shape weight_dims_;
  bool bias_;
  dnnl::convolution_forward::primitive_desc forward_desc_;
  dnnl::memory read_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_cut_convolution(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<CutConvolution>(std::move(library), site);
}

}  // namespace stepcast::onednn
