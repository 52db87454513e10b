#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// 1-D, 2-D and 3-D convolution in the layouts that oneDNN likes best. Weights stay in the layout of the
/// forward pass.
class Convolution final : public OnednnLayer {
 public:
  Convolution(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        weight_dims_(layer().parameters.at(0).shape),
        bias_(layer().parameters.size() > 1),
        forward_desc_(forward_primitive()) {
    add_parameter(forward_desc_.weights_desc(), plain(weight_dims_));
    if (bias_) add_parameter(bias_desc(), bias_desc());
    const OnednnTensor& output = make_output(forward_desc_.dst_desc());
    Arguments arguments{{DNNL_ARG_SRC, arranged(forward_, input().memory(), forward_desc_.src_desc())},
                        {DNNL_ARG_WEIGHTS, parameter(0).value},
                        {DNNL_ARG_DST, output.memory()}};
    if (bias_) arguments[DNNL_ARG_BIAS] = parameter(1).value;
    call(forward_, dnnl::convolution_forward(forward_desc_), arguments);
  }

 private:
  Desc bias_desc() const { return bias_ ? plain({weight_dims_[0]}) : Desc(); }
  Desc source() const { return any(input().shape()); }
  Desc target() const { return any(batched(layer().output)); }

  dnnl::convolution_forward::primitive_desc forward_primitive() const {
    const Window& w = layer().window;
    return {{dnnl::prop_kind::forward_training, kDirect, source(), any(weight_dims_), bias_desc(), target(),
             w.stride, w.pad_before, w.pad_after},
            engine()};
  }

  void connect() override {
    if (wanted()) connect_data();
    connect_weights();
  }

  void connect_data() {
    const Window& w = layer().window;
    const dnnl::convolution_backward_data::primitive_desc desc(
        {kDirect, source(), any(weight_dims_), target(), w.stride, w.pad_before, w.pad_after}, engine(),
        forward_desc_);
    const dnnl::memory gradient = output_gradient(backward_data_, desc.diff_dst_desc());
    const dnnl::memory weights = arranged(backward_data_, parameter(0).value, desc.weights_desc());
    call(backward_data_, dnnl::convolution_backward_data(desc),
         {{DNNL_ARG_DIFF_DST, gradient},
          {DNNL_ARG_WEIGHTS, weights},
          {DNNL_ARG_DIFF_SRC, make_input_gradient(desc.diff_src_desc()).memory()}});
  }

  void connect_weights() {
    const Window& w = layer().window;
    const dnnl::convolution_backward_weights::primitive_desc desc(
        {kDirect, source(), any(weight_dims_), bias_desc(), target(), w.stride, w.pad_before, w.pad_after},
        engine(), forward_desc_);
    const bool same_layout = desc.diff_weights_desc() == parameter(0).gradient.get_desc();
    const dnnl::memory result = same_layout ? parameter(0).gradient : scratch(desc.diff_weights_desc());
    Arguments arguments{{DNNL_ARG_DIFF_DST, output_gradient(backward_weights_, desc.diff_dst_desc())},
                        {DNNL_ARG_SRC, arranged(backward_weights_, input().memory(), desc.src_desc())},
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
};

}  // namespace

std::unique_ptr<LayerKernel> make_convolution(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Convolution>(std::move(library), site);
}

}  // namespace stepcast::onednn
