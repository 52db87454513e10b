#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {
namespace {

using dnnl::normalization_flags;

constexpr float kEpsilon = 1e-5f;
constexpr float kMomentum = 0.9f;  // weight of the running statistics in each step's update

/// Batch norm with the statistics of the batch. Running statistics are updated and not used in training.
class BatchNorm final : public OnednnLayer {
 public:
  BatchNorm(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        forward_desc_({dnnl::prop_kind::forward_training, input().desc(), kEpsilon, flags()}, engine()),
        mean_(scratch(channels())),
        variance_(scratch(channels())) {
    for (std::size_t i = 0; i < layer().parameters.size(); ++i) add_parameter(channels(), channels());
    const OnednnTensor& output = make_output(forward_desc_.dst_desc());
    Arguments arguments{{DNNL_ARG_SRC, input().memory()},
                        {DNNL_ARG_DST, output.memory()},
                        {DNNL_ARG_MEAN, mean_},
                        {DNNL_ARG_VARIANCE, variance_}};
    add_scale_and_shift(arguments);
    call(forward_, dnnl::batch_normalization_forward(forward_desc_), arguments);
    update_running(find_parameter("running_mean"), mean_);
    update_running(find_parameter("running_variance"), variance_);
  }

 private:
  Desc channels() const { return plain({layer().input.front()}); }

  normalization_flags flags() const {
    auto result = normalization_flags::none;
    if (find_parameter("scale") >= 0) result |= normalization_flags::use_scale;
    if (find_parameter("shift") >= 0) result |= normalization_flags::use_shift;
    return result;
  }

  const Parameter& named(const char* name) const {
    return parameter(static_cast<std::size_t>(find_parameter(name)));
  }

  void add_scale_and_shift(Arguments& arguments) const {
    if (find_parameter("scale") >= 0) arguments[DNNL_ARG_SCALE] = named("scale").value;
    if (find_parameter("shift") >= 0) arguments[DNNL_ARG_SHIFT] = named("shift").value;
  }

  void update_running(int running, const dnnl::memory& batch_value) {
    if (running < 0) return;
    const Parameter& target = parameter(static_cast<std::size_t>(running));
    forward_.emplace_back([&target, batch_value, channels = layer().input.front()] {
      const float* value = static_cast<const float*>(batch_value.get_data_handle());
      float* average = target.data();
      for (std::int64_t i = 0; i < channels; ++i)
        average[i] = kMomentum * average[i] + (1 - kMomentum) * value[i];
    });
  }

  void connect() override {
    const Desc data = input().desc();
    const dnnl::batch_normalization_backward::primitive_desc desc(
        {dnnl::prop_kind::backward, data, data, kEpsilon, flags()}, engine(), forward_desc_);
    Steps& steps = wanted() ? backward_data_ : backward_weights_;
    Arguments arguments{{DNNL_ARG_SRC, input().memory()},
                        {DNNL_ARG_DIFF_DST, output_gradient(steps, desc.diff_dst_desc())},
                        {DNNL_ARG_MEAN, mean_},
                        {DNNL_ARG_VARIANCE, variance_},
                        {DNNL_ARG_DIFF_SRC, make_input_gradient(desc.diff_src_desc()).memory()}};
    add_scale_and_shift(arguments);
    if (find_parameter("scale") >= 0) arguments[DNNL_ARG_DIFF_SCALE] = named("scale").gradient;
    if (find_parameter("shift") >= 0) arguments[DNNL_ARG_DIFF_SHIFT] = named("shift").gradient;
    call(steps, dnnl::batch_normalization_backward(desc), arguments);
  }

  dnnl::batch_normalization_forward::primitive_desc forward_desc_;
  dnnl::memory mean_, variance_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_batch_norm(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<BatchNorm>(std::move(library), site);
}

namespace {

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
