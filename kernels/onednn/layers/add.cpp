#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {
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
      arguments[DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i)] = reordered(forward_, input(i).memory(), layout);
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
