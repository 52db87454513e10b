#include <stdexcept>

#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

dnnl::algorithm algorithm(LayerKind kind) {
  switch (kind) {
    case LayerKind::relu:
    case LayerKind::leaky_relu:
      return dnnl::algorithm::eltwise_relu;
    case LayerKind::sigmoid:
      return dnnl::algorithm::eltwise_logistic;
    case LayerKind::tanh:
      return dnnl::algorithm::eltwise_tanh;
    case LayerKind::elu:
      return dnnl::algorithm::eltwise_elu;
    case LayerKind::gelu:
      return dnnl::algorithm::eltwise_gelu_erf;
    default:
      throw std::invalid_argument("algorithm: not an activation");
  }
}

/// Out of place, in the layout of the input.
class Activation final : public OnednnLayer {
 public:
  Activation(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        alpha_(layer().kind == LayerKind::relu ? 0 : static_cast<float>(layer().coefficient)),
        forward_desc_({dnnl::prop_kind::forward_training, algorithm(layer().kind), input().desc(), alpha_, 0},
                      engine()) {
    const OnednnTensor& output = make_output(input().desc());
    call(forward_, dnnl::eltwise_forward(forward_desc_),
         {{DNNL_ARG_SRC, input().memory()}, {DNNL_ARG_DST, output.memory()}});
  }

 private:
  void connect() override {
    if (!wanted()) return;
    const Desc data = input().desc();
    const dnnl::eltwise_backward::primitive_desc desc({algorithm(layer().kind), data, data, alpha_, 0},
                                                      engine(), forward_desc_);
    call(backward_data_, dnnl::eltwise_backward(desc),
         {{DNNL_ARG_SRC, input().memory()},
          {DNNL_ARG_DIFF_DST, output_gradient(backward_data_, data)},
          {DNNL_ARG_DIFF_SRC, make_input_gradient(data).memory()}});
  }

  float alpha_;
  dnnl::eltwise_forward::primitive_desc forward_desc_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_activation(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Activation>(std::move(library), site);
}

}  // namespace stepcast::onednn
