#pragma once

#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {

constexpr auto kDirect = dnnl::algorithm::convolution_direct;

/// The dimensions of the filters as oneDNN takes them: with groups {groups, filters of one, channels of one,
/// kernel...}.
inline Shape filter_dims(const Layer& layer) {
  Shape dims = layer.parameters.at(0).shape;
  if (layer.groups == 1) return dims;
  dims.front() /= layer.groups;
  dims.insert(dims.begin(), layer.groups);
  return dims;
}

/// The passes and parameters that convolutions of whole samples share with convolutions of spatially
/// partitioned samples. `Base` is OnednnLayer or derived from it. Weights stay in the layout of the forward
/// pass.
template <class Base>
class ConvolutionLayer : public Base {
 protected:
  ConvolutionLayer(std::shared_ptr<Library> library, const LayerSite& site)
      : Base(std::move(library), site),
        weight_dims_(filter_dims(Base::layer())),
        bias_(Base::layer().parameters.size() > 1) {}

  const Shape& weight_dims() const { return weight_dims_; }
  std::int64_t filters() const { return Base::layer().parameters.at(0).shape.front(); }
  Desc bias_desc() const { return bias_ ? plain({filters()}) : Desc(); }

  /// Makes the parameters and the output in the layouts that the forward primitive chose.
  void make_arrays(const dnnl::convolution_forward::primitive_desc& desc) {
    Base::add_parameter(desc.weights_desc(), plain(weight_dims_));
    if (bias_) Base::add_parameter(bias_desc(), bias_desc());
    Base::make_output(desc.dst_desc());
  }

  void compute_forward(Steps& steps, const dnnl::convolution_forward::primitive_desc& desc,
                       const dnnl::memory& source, const dnnl::memory& output) {
    Arguments arguments{
        {DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, Base::parameter(0).value}, {DNNL_ARG_DST, output}};
    if (bias_) arguments[DNNL_ARG_BIAS] = Base::parameter(1).value;
    Base::call(steps, dnnl::convolution_forward(desc), arguments);
  }

  void compute_input_gradient(Steps& steps, const dnnl::convolution_backward_data::primitive_desc& desc,
                              const dnnl::memory& output_gradient, const dnnl::memory& result) {
    const dnnl::memory weights = Base::reordered(steps, Base::parameter(0).value, desc.weights_desc());
    Base::call(
        steps, dnnl::convolution_backward_data(desc),
        {{DNNL_ARG_DIFF_DST, output_gradient}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DIFF_SRC, result}});
  }

  void compute_weight_gradient(const dnnl::convolution_backward_weights::primitive_desc& desc,
                               const dnnl::memory& source) {
    Steps& steps = Base::backward_weights_;
    const dnnl::memory& gradient = Base::parameter(0).gradient;
    const bool same_layout = desc.diff_weights_desc() == gradient.get_desc();
    const dnnl::memory result = same_layout ? gradient : Base::scratch(desc.diff_weights_desc());
    Arguments arguments{{DNNL_ARG_DIFF_DST, Base::output_gradient(steps, desc.diff_dst_desc())},
                        {DNNL_ARG_SRC, Base::reordered(steps, source, desc.src_desc())},
                        {DNNL_ARG_DIFF_WEIGHTS, result}};
    if (bias_) arguments[DNNL_ARG_DIFF_BIAS] = Base::parameter(1).gradient;
    Base::call(steps, dnnl::convolution_backward_weights(desc), arguments);
    if (same_layout) return;
    Base::call(steps, dnnl::reorder(result, gradient), {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, gradient}});
  }

 private:
  Shape weight_dims_;
  bool bias_;
};

}  // namespace stepcast::onednn
