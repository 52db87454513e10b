#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {
namespace {

using dnnl::normalization_flags;

constexpr float kEpsilon = 1e-5f;

/// Normalizes over the last dimension, then applies scale and shift.
class LayerNorm final : public OnednnLayer {
 public:
  LayerNorm(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        layout_(has_rows(input().desc()) ? input().desc() : plain(input().shape())),
        source_(reordered(forward_, input().memory(), layout_)),
        forward_desc_({dnnl::prop_kind::forward_training, matrix(), kEpsilon, flags()}, engine()),
        mean_(scratch(forward_desc_.mean_desc())),
        variance_(scratch(forward_desc_.variance_desc())) {
    const Desc features = plain({layer().input.back()});
    for (std::size_t i = 0; i < layer().parameters.size(); ++i) add_parameter(features, features);
    call(forward_, dnnl::layer_normalization_forward(forward_desc_),
         {{DNNL_ARG_SRC, as_matrix(source_)},
          {DNNL_ARG_DST, as_matrix(make_output(layout_).memory())},
          {DNNL_ARG_MEAN, mean_},
          {DNNL_ARG_VARIANCE, variance_},
          {DNNL_ARG_SCALE, parameter(0).value},
          {DNNL_ARG_SHIFT, parameter(1).value}});
  }

 private:
  Desc matrix() const { return as_matrix(source_).get_desc(); }
  normalization_flags flags() const {
    return normalization_flags::use_scale | normalization_flags::use_shift;
  }

  void connect() override {
    const dnnl::layer_normalization_backward::primitive_desc desc(
        {dnnl::prop_kind::backward, matrix(), matrix(), kEpsilon, flags()}, engine(), forward_desc_);
    Steps& steps = wanted() ? backward_data_ : backward_weights_;
    call(steps, dnnl::layer_normalization_backward(desc),
         {{DNNL_ARG_SRC, as_matrix(source_)},
          {DNNL_ARG_DIFF_DST, as_matrix(output_gradient(steps, layout_))},
          {DNNL_ARG_MEAN, mean_},
          {DNNL_ARG_VARIANCE, variance_},
          {DNNL_ARG_SCALE, parameter(0).value},
          {DNNL_ARG_SHIFT, parameter(1).value},
          {DNNL_ARG_DIFF_SRC, as_matrix(make_input_gradient(layout_).memory())},
          {DNNL_ARG_DIFF_SCALE, parameter(0).gradient},
          {DNNL_ARG_DIFF_SHIFT, parameter(1).gradient}});
  }

  Desc layout_;
  dnnl::memory source_;
  dnnl::layer_normalization_forward::primitive_desc forward_desc_;
  dnnl::memory mean_, variance_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_layer_norm(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<LayerNorm>(std::move(library), site);
}

}  // namespace stepcast::onednn
