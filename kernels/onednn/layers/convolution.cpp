#include "kernels/onednn/layers/convolution.hpp"

namespace stepcast::onednn {
namespace {

/// 1-D, 2-D and 3-D convolution in the layouts that oneDNN chooses.
class Convolution final : public ConvolutionLayer<OnednnLayer> {
 public:
  Convolution(std::shared_ptr<Library> library, const LayerSite& site)
      : ConvolutionLayer(std::move(library), site), forward_desc_(forward_primitive()) {
    make_arrays(forward_desc_);
    compute_forward(forward_desc_, reordered(forward_, input().memory(), forward_desc_.src_desc()),
                    output_memory());
  }

 private:
  Desc source() const { return any(input().shape()); }
  Desc target() const { return any(batched(layer().output)); }

  dnnl::convolution_forward::primitive_desc forward_primitive() const {
    const Window& w = layer().window;
    return {{dnnl::prop_kind::forward_training, kDirect, source(), any(weight_dims()), bias_desc(), target(),
             w.stride, w.pad_before, w.pad_after},
            engine()};
  }

  void connect() override {
    const Window& w = layer().window;
    if (wanted()) {
      const dnnl::convolution_backward_data::primitive_desc desc(
          {kDirect, source(), any(weight_dims()), target(), w.stride, w.pad_before, w.pad_after}, engine(),
          forward_desc_);
      compute_input_gradient(desc, output_gradient(backward_data_, desc.diff_dst_desc()));
    }
    compute_weight_gradient(
        {{kDirect, source(), any(weight_dims()), bias_desc(), target(), w.stride, w.pad_before, w.pad_after},
         engine(),
         forward_desc_},
        input().memory());
  }

  dnnl::convolution_forward::primitive_desc forward_desc_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_convolution(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Convolution>(std::move(library), site);
}

}  // namespace stepcast::onednn
