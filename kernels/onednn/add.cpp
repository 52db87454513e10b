#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

/// Sum of all inputs in the layout of the first. The gradient of every input is the gradient of the output:
/// no copy.
class Add final : public OnednnLayer {
 public:
  Add(std::shared_ptr<Library> library, const LayerSite& site) : OnednnLayer(std::move(library), site) {
    const Desc layout = input().desc();
    Arguments arguments{{DNNL_ARG_DST, make_output(layout).memory()}};
    const std::size_t count = this->site().inputs.size();
    for (std::size_t i = 0; i < count; ++i) {
      arguments[DNNL_ARG_MULTIPLE_SRC + static_cast<int>(i)] = arranged(forward_, input(i).memory(), layout);
    }
    const dnnl::sum::primitive_desc desc(layout, std::vector<float>(count, 1),
                                         std::vector<Desc>(count, layout), engine());
    call(forward_, dnnl::sum(desc), arguments);
  }

 private:
  void connect() override {
    const auto gradient = joined_gradient(backward_data_);
    for (std::size_t i = 0; i < site().inputs.size(); ++i) {
      if (wanted(i)) pass_gradient_on(gradient, i);
    }
  }
};

}  // namespace

std::unique_ptr<LayerKernel> make_add(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Add>(std::move(library), site);
}

}  // namespace stepcast::onednn
