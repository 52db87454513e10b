#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

constexpr auto kNearest = dnnl::algorithm::resampling_nearest;

/// Every element repeated by an integer factor a dimension.
class UpSample final : public OnednnLayer {
 public:
  UpSample(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        forward_desc_(
            {dnnl::prop_kind::forward_training, kNearest, input().desc(), any(batched(layer().output))},
            engine()) {
    const OnednnTensor& output = make_output(forward_desc_.dst_desc());
    call(forward_, dnnl::resampling_forward(forward_desc_),
         {{DNNL_ARG_SRC, input().memory()}, {DNNL_ARG_DST, output.memory()}});
  }

 private:
  void connect() override {
    if (!wanted()) return;
    const Desc gradient = forward_desc_.dst_desc();
    const dnnl::resampling_backward::primitive_desc desc({kNearest, input().desc(), gradient}, engine(),
                                                         forward_desc_);
    call(backward_data_, dnnl::resampling_backward(desc),
         {{DNNL_ARG_DIFF_DST, output_gradient(backward_data_, gradient)},
          {DNNL_ARG_DIFF_SRC, make_input_gradient(input().desc()).memory()}});
  }

  dnnl::resampling_forward::primitive_desc forward_desc_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_up_sample(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<UpSample>(std::move(library), site);
}

}  // namespace stepcast::onednn
