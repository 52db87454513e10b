#pragma once

#include "kernels/cudnn/cuda/sums.hpp"
#include "kernels/cudnn/layers/convolution_search.hpp"
#include "kernels/cudnn/layers/layer.hpp"

namespace stepcast::cudnn {

/// A convolution's filter, padding and strides.
struct ConvolutionShape {
  Shape filter;                ///< {k, c / groups, spatial...}
  bool channels_last = false;  ///< the filter is stored {k, spatial, c}
  std::vector<std::int64_t> pad, stride;
};

/// Tensors of these shapes, which have at least 4 dimensions, in one layout, for the graph API.
ConvolutionTensors tensors_of(Element element, const Shape& x, const Shape& y, Order order,
                              const ConvolutionShape& shape);

ConvolutionCall describe_call(const Device& device, const CudnnTensor& x, const CudnnTensor& y,
                              const ConvolutionShape& shape);

/// cuDNN's three calls, which are started on the device's stream.
void convolve(const Device& device, const ConvolutionCall& call, const TimedChoice& how, const void* x,
              const void* w, void* y);
void convolve_back_data(const Device& device, const ConvolutionCall& call, const TimedChoice& how,
                        const void* w, const void* dy, void* dx);
void convolve_back_filter(const Device& device, const ConvolutionCall& call, const TimedChoice& how,
                          const void* x, const void* dy, void* dw);

/// The layout in which a convolution computes: that of the options, unless cuDNN has no algorithm for it, as
/// for some odd numbers of channels in bf16 and f16. The layer then converts its input and its gradient.
Order convolution_order(const Device& device, const Layer& layer, std::int64_t batch);

/// The parameters and passes that convolutions of whole samples share with convolutions of spatially
/// partitioned samples. The passes read an input that was padded, or gathered from several devices. `Base` is
/// CudnnLayer or derived from it.
template <class Base>
class ConvolutionLayer : public Base {
 protected:
  ConvolutionLayer(std::shared_ptr<Device> device, const LayerSite& site)
      : Base(std::move(device), site),
        order_(convolution_order(*Base::device(), Base::layer(), Base::batch())),
        weight_(Base::add_parameter(order_ == Order::channels_last)) {
    if (Base::layer().parameters.size() > 1) bias_ = &Base::add_parameter();
    if (order_ != Base::image_order(Base::input().shape()))
      Base::note("NCHW, because cuDNN has no algorithm for this layer in NHWC");
  }

  Order order() const { return order_; }
  const Shape& filter() const { return weight_.shape; }
  const void* weights() const { return Base::weight_operand(weight_); }
  /// Memory of the weights' size, for searches; the layer's own memory is bound later.
  CudnnTensor weights_for_search() const { return Base::scratch(weight_.shape); }

  ConvolutionShape shape_padded_by(const std::vector<std::int64_t>& pad) const {
    return {weight_.shape, weight_.channels_last, pad, Base::layer().window.stride};
  }

  /// @param call  outlives the layer
  void compute_forward(const ConvolutionCall& call, const CudnnTensor& x) {
    Base::cast_weights(Base::forward_, weight_);
    const TimedChoice how = fastest_forward(*Base::device(), call, Base::result().data());
    Base::note(forward_name(how));
    Base::forward_.emplace_back([this, &call, x, how] {
      convolve(*Base::device(), call, how, x.data(), weights(), Base::result().data());
    });
    if (bias_ == nullptr) return;
    Base::forward_.emplace_back([this, c = channels()] {
      add_bias(Base::result().data(), Base::result().data(), bias_->value, Base::element(), c.elements(),
               c.inner, c.channels, Base::stream());
    });
  }

  void compute_weights(const ConvolutionCall& call, const CudnnTensor& x) {
    Steps& steps = Base::backward_weights_;
    const CudnnTensor dy = Base::output_gradient(steps, order_), dw = weights_for_search();
    const TimedChoice how = fastest_backward_filter(*Base::device(), call, dw.data());
    Base::note(backward_filter_name(how));
    steps.emplace_back([this, &call, x, dy, how] {
      convolve_back_filter(*Base::device(), call, how, x.data(), dy.data(), Base::gradient_operand(weight_));
    });
    Base::cast_gradient(steps, weight_);
    if (bias_ == nullptr) return;
    steps.emplace_back([this, dy] {
      const Workspace& workspace = Base::device()->workspace;
      channel_sums(channels(), dy.data(), bias_->gradient, {workspace.data(), workspace.bytes},
                   Base::stream());
    });
  }

 private:
  /// Channels of the output.
  Channels channels() const {
    const std::int64_t k = weight_.shape[0], all = Base::result().elements();
    if (order_ == Order::channels_last) return {all / k, k, 1, Base::element()};
    return {Base::batch(), k, all / (Base::batch() * k), Base::element()};
  }

  Order order_;
  typename Base::Parameter& weight_;
  typename Base::Parameter* bias_ = nullptr;
};

}  // namespace stepcast::cudnn
