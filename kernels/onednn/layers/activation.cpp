#include <stdexcept>

#include "kernels/network/dropout_mask.hpp"
#include "kernels/onednn/layers/layer.hpp"

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

/// An element-wise activation, out of place, in the layout of the input.
class Activation final : public OnednnLayer {
 public:
  Activation(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        alpha_(layer().kind == LayerKind::relu ? 0 : layer().coefficient),
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

namespace {

/// A dropout mask: to[i] = from[i] / (1 - share), or 0 if the element is dropped.
struct Mask {
  std::uint32_t key;
  double share;

  /// @param first  number of the first element
  void apply(const float* from, float* to, std::size_t elements, std::size_t first = 0) const {
    const std::uint32_t threshold = dropout_threshold(share);
    const float scale = share >= 1 ? 0 : 1 / (1 - share);
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < elements; ++i) {
      to[i] = dropout_bits(key, first + i) < threshold ? 0 : from[i] * scale;
    }
  }
};

/// Drops a share of the elements, with a new mask every step.
class Dropout final : public OnednnLayer {
 public:
  Dropout(std::shared_ptr<Library> library, const LayerSite& site) : OnednnLayer(std::move(library), site) {
    const OnednnTensor& output = make_output(input().desc());
    forward_.emplace_back([this, from = input().data(), to = output.data(), n = output.stored_elements()] {
      apply(mask(), from, to, n);
      ++step_;
    });
  }

 private:
  Mask mask() const { return {dropout_key(site().seed, site().index, step_), layer().coefficient}; }

  void connect() override {
    if (!wanted()) return;
    const dnnl::memory gradient = output_gradient(backward_data_, output_desc());
    const OnednnTensor& result = make_input_gradient(output_desc());
    backward_data_.emplace_back([this, from = static_cast<const float*>(gradient.get_data_handle()),
                                 to = result.data(), n = result.stored_elements()] {
      const Mask last{dropout_key(site().seed, site().index, step_ - 1), layer().coefficient};
      apply(last, from, to, n);
    });
  }

  /// Elements are numbered as in the whole samples, of which this device may have some tokens.
  void apply(const Mask& mask, const float* from, float* to, std::size_t elements) const {
    if (site().share == nullptr) return mask.apply(from, to, elements);
    const std::size_t features = layer().output.back();
    const std::size_t tokens = site().share->whole_tokens;
    for (std::size_t sample = 0; sample < static_cast<std::size_t>(batch()); ++sample) {
      for (const Rows& run : site().share->tokens) {
        const std::size_t count = run.size() * features;
        mask.apply(from, to, count, (sample * tokens + run.first) * features);
        from += count;
        to += count;
      }
    }
  }

  std::uint32_t step_ = 0;
};

}  // namespace

std::unique_ptr<LayerKernel> make_dropout(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Dropout>(std::move(library), site);
}

namespace {

/// Sum of all inputs in the layout of the first. The gradient of every input is the gradient of the output,
/// without a copy.
class Add final : public OnednnLayer {
 public:
  Add(std::shared_ptr<Library> library, const LayerSite& site) : OnednnLayer(std::move(library), site) {
    const Desc layout = input().desc();
    Arguments arguments{{DNNL_ARG_DST, make_output(layout).memory()}};
    const std::size_t count = this->site().inputs.size();
    for (std::size_t i = 0; i < count; ++i) {
      arguments[DNNL_ARG_MULTIPLE_SRC + i] = reordered(forward_, input(i).memory(), layout);
    }
    const dnnl::sum::primitive_desc desc(layout, std::vector<float>(count, 1),
                                         std::vector<Desc>(count, layout), engine());
    call(forward_, dnnl::sum(desc), arguments);
  }

 private:
  void connect() override {
    const auto gradient = output_gradient_tensor(backward_data_);
    for (std::size_t i = 0; i < site().inputs.size(); ++i) {
      if (wanted(i)) share_input_gradient(gradient, i);
    }
  }
};

}  // namespace

std::unique_ptr<LayerKernel> make_add(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Add>(std::move(library), site);
}

namespace {

/// A view of the input's elements in row-major order; a copy only if the input has a blocked layout.
class Reshape final : public OnednnLayer {
 public:
  Reshape(std::shared_ptr<Library> library, const LayerSite& site) : OnednnLayer(std::move(library), site) {
    const Desc to = plain(batched(layer().output));
    if (input().desc() == row_major()) {
      share_output(std::make_shared<OnednnTensor>(input(), to));
      return;
    }
    const OnednnTensor& output = make_output(to);
    copy(forward_, input().memory(), OnednnTensor(output, row_major()).memory());
  }

 private:
  Desc row_major() const { return plain(input().shape()); }

  void copy(Steps& steps, const dnnl::memory& from, const dnnl::memory& to) const {
    call(steps, dnnl::reorder(from, to), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}});
  }

  void connect() override {
    if (!wanted()) return;
    const auto gradient = output_gradient_tensor(backward_data_);
    if (gradient->desc() == plain(gradient->shape())) {
      share_input_gradient(std::make_shared<OnednnTensor>(*gradient, row_major()));
      return;
    }
    const OnednnTensor& result = make_input_gradient(row_major());
    copy(backward_data_, gradient->memory(), OnednnTensor(result, plain(gradient->shape())).memory());
  }
};

}  // namespace

std::unique_ptr<LayerKernel> make_reshape(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Reshape>(std::move(library), site);
}

}  // namespace stepcast::onednn
