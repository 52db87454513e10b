#include "kernels/cudnn/elements.hpp"
#include "kernels/cudnn/kinds.hpp"

namespace stepcast::cudnn {
namespace {

/// Sum of all inputs in the order of the first. The gradient of every input is the gradient of the output: no
/// copy.
class Add final : public CudnnLayer {
 public:
  Add(std::shared_ptr<Device> device, const LayerSite& site) : CudnnLayer(std::move(device), site) {
    const CudnnTensor& output = make_output(input().shape(), input_order());
    std::vector<const void*> terms;
    for (std::size_t i = 0; i < this->site().inputs.size(); ++i) {
      terms.push_back(arranged(forward_, input(i), input_order()).data());
    }
    forward_.emplace_back([this, terms, y = output.data(), n = static_cast<std::int64_t>(output.elements())] {
      sum(terms, y, element(), n, stream());
    });
  }

 private:
  void connect() override {
    const CudnnTensor gradient = output_gradient(backward_data_, result().order());
    for (std::size_t i = 0; i < site().inputs.size(); ++i) {
      if (wanted(i)) pass_gradient_on(gradient, i);
    }
  }
};

}  // namespace

std::unique_ptr<LayerKernel> make_add(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Add>(std::move(device), site);
}

}  // namespace stepcast::cudnn
