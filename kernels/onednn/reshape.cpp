#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

/// Another view of the same elements in row-major order; a copy only where the input has a blocked layout.
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
    const auto gradient = joined_gradient(backward_data_);
    if (gradient->desc() == plain(gradient->shape())) {
      pass_gradient_on(std::make_shared<OnednnTensor>(*gradient, row_major()));
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
