#include "kernels/onednn/layers/windows.hpp"

#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {

namespace {

/// 1-D, 2-D and 3-D convolution in the layouts that oneDNN chooses.
class Convolution final : public ConvolutionLayer<OnednnLayer> {
 public:
  Convolution(std::shared_ptr<Library> library, const LayerSite& site)
      : ConvolutionLayer(std::move(library), site), forward_desc_(forward_primitive()) {
    make_arrays(forward_desc_);
    compute_forward(forward_, forward_desc_, reordered(forward_, input().memory(), forward_desc_.src_desc()),
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
      compute_input_gradient(backward_data_, desc, output_gradient(backward_data_, desc.diff_dst_desc()),
                             make_input_gradient(desc.diff_src_desc()).memory());
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

namespace {

/// Maximum, or mean over the elements inside the image (padding is not counted).
class Pool final : public OnednnLayer {
 public:
  Pool(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site), forward_desc_(forward_primitive()) {
    const OnednnTensor& output = make_output(forward_desc_.dst_desc());
    Arguments arguments{{DNNL_ARG_SRC, input().memory()}, {DNNL_ARG_DST, output.memory()}};
    if (layer().kind == LayerKind::max_pool) {
      workspace_ = dnnl::memory(forward_desc_.workspace_desc(), engine());
      arguments[DNNL_ARG_WORKSPACE] = workspace_;
    }
    call(forward_, dnnl::pooling_forward(forward_desc_), arguments);
  }

 private:
  dnnl::algorithm algorithm() const {
    return layer().kind == LayerKind::max_pool ? dnnl::algorithm::pooling_max
                                               : dnnl::algorithm::pooling_avg_exclude_padding;
  }

  dnnl::pooling_forward::primitive_desc forward_primitive() const {
    const Window& w = layer().window;
    return {{dnnl::prop_kind::forward_training, algorithm(), input().desc(), any(batched(layer().output)),
             w.stride, w.kernel, w.pad_before, w.pad_after},
            engine()};
  }

  void connect() override {
    if (!wanted()) return;
    const Window& w = layer().window;
    const Desc gradient = forward_desc_.dst_desc();
    const dnnl::pooling_backward::primitive_desc desc(
        {algorithm(), input().desc(), gradient, w.stride, w.kernel, w.pad_before, w.pad_after}, engine(),
        forward_desc_);
    Arguments arguments{{DNNL_ARG_DIFF_DST, output_gradient(backward_data_, gradient)},
                        {DNNL_ARG_DIFF_SRC, make_input_gradient(input().desc()).memory()}};
    if (workspace_) arguments[DNNL_ARG_WORKSPACE] = workspace_;
    call(backward_data_, dnnl::pooling_backward(desc), arguments);
  }

  dnnl::pooling_forward::primitive_desc forward_desc_;
  dnnl::memory workspace_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_pool(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Pool>(std::move(library), site);
}

namespace {

constexpr auto kNearest = dnnl::algorithm::resampling_nearest;

/// Repeats every element by an integer factor in each dimension.
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
