
#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {
namespace {

/// y = W x + b for every row of the input. If ranks share the inputs, W x is all-reduced and b is added after
/// it; with LayerShare::tokens it is added before, to the sums of these tokens.
class Dense final : public OnednnLayer {
 public:
  Dense(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        weight_dims_(layer().parameters.at(0).shape),
        bias_(layer().parameters.size() > 1),
        rows_(element_count(input().shape()) / weight_dims_[1]),
        forward_desc_({dnnl::prop_kind::forward_training, source(), any(weight_dims_),
                       is(LayerShare::Form::rows) ? Desc() : bias_desc(), target()},
                      engine()) {
    add_parameter(forward_desc_.weights_desc(), plain(weight_dims_));
    if (bias_) add_parameter(bias_desc(), bias_desc());
    const Desc layout = row_layout(input().desc());
    source_ = reordered(forward_, input().memory(), layout);
    const OnednnTensor& output = make_output(with_row_length(layout, weight_dims_[0]));
    Arguments arguments{{DNNL_ARG_SRC, as_matrix(source_)},
                        {DNNL_ARG_WEIGHTS, parameter(0).value},
                        {DNNL_ARG_DST, as_matrix(output.memory())}};
    if (bias_ && !is(LayerShare::Form::rows)) arguments[DNNL_ARG_BIAS] = parameter(1).value;
    call(forward_, dnnl::inner_product_forward(forward_desc_), arguments);
    output_ = {output.data(), static_cast<std::size_t>(rows_ * weight_dims_[0])};
    if (!is(LayerShare::Form::rows)) return;
    forward_.emplace_back([this] {
      if (!sums_deferred_) add_bias();
    });
  }

  std::span<float> partial_sums(Pass pass) override {
    if (pass == Pass::forward && is(LayerShare::Form::rows)) return output_;
    if (pass == Pass::backward_data && is(LayerShare::Form::columns)) return errors_;
    return {};
  }
  void defer_sums() override { sums_deferred_ = true; }
  void finish(Pass pass) override {
    if (pass == Pass::forward && is(LayerShare::Form::rows)) add_bias();
  }

 private:
  bool is(LayerShare::Form form) const { return site().share != nullptr && site().share->form == form; }

  void add_bias() {
    if (!bias_) return;
    if (site().share->tokens.empty()) return add_bias({0, rows_});
    const std::int64_t tokens = rows_ / batch();
    for (std::int64_t sample = 0; sample < batch(); ++sample)
      for (const Rows& run : site().share->tokens)
        add_bias({sample * tokens + run.first, sample * tokens + run.last});
  }

  void add_bias(const Rows& rows) {
    const float* bias = parameter(1).data();
    const std::int64_t units = weight_dims_[0];
#pragma omp parallel for schedule(static)
    for (std::int64_t row = rows.first; row < rows.last; ++row) {
      float* y = output_.data() + row * units;
      for (std::int64_t i = 0; i < units; ++i) y[i] += bias[i];
    }
  }

  Desc bias_desc() const {
    return bias_ ? plain({weight_dims_[0]}) : Desc();
  }
  Desc source() const {
    return plain({rows_, weight_dims_[1]});
  }
  Desc target() const {
    return plain({rows_, weight_dims_[0]});
  }

  void connect() override {
    if (wanted()) connect_data();
    connect_weights();
  }

  void connect_data() {
    const dnnl::inner_product_backward_data::primitive_desc desc({source(), any(weight_dims_), target()},
                                                                 engine(), forward_desc_);
    const dnnl::memory gradient = as_matrix(output_gradient(backward_data_, output_desc()));
    const dnnl::memory weights = reordered(backward_data_, parameter(0).value, desc.weights_desc());
    const OnednnTensor& result = make_input_gradient(source_.get_desc());
    errors_ = {result.data(), static_cast<std::size_t>(rows_ * weight_dims_[1])};
    call(backward_data_, dnnl::inner_product_backward_data(desc),
         {{DNNL_ARG_DIFF_DST, gradient},
          {DNNL_ARG_WEIGHTS, weights},
          {DNNL_ARG_DIFF_SRC, as_matrix(result.memory())}});
  }

  void connect_weights() {
    const dnnl::inner_product_backward_weights::primitive_desc desc(
        {source(), any(weight_dims_), bias_desc(), target()}, engine(), forward_desc_);
    const bool same_layout = desc.diff_weights_desc() == parameter(0).gradient.get_desc();
    const dnnl::memory result = same_layout ? parameter(0).gradient : scratch(desc.diff_weights_desc());
    Arguments arguments{{DNNL_ARG_DIFF_DST, as_matrix(output_gradient(backward_weights_, output_desc()))},
                        {DNNL_ARG_SRC, as_matrix(source_)},
                        {DNNL_ARG_DIFF_WEIGHTS, result}};
    if (bias_) arguments[DNNL_ARG_DIFF_BIAS] = parameter(1).gradient;
    call(backward_weights_, dnnl::inner_product_backward_weights(desc), arguments);
    if (same_layout) return;
    call(backward_weights_, dnnl::reorder(result, parameter(0).gradient),
         {{DNNL_ARG_FROM, result}, {DNNL_ARG_TO, parameter(0).gradient}});
  }

  Shape weight_dims_;
  bool bias_;
  std::int64_t rows_;
  dnnl::inner_product_forward::primitive_desc forward_desc_;
  dnnl::memory source_;
  std::span<float> output_, errors_;
  bool sums_deferred_ = false;
};

}  // namespace

std::unique_ptr<LayerKernel> make_dense(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Dense>(std::move(library), site);
}

}  // namespace stepcast::onednn
