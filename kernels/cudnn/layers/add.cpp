#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/layers/layer.hpp"

namespace stepcast::cudnn {
namespace {

/// Sum of all inputs in the layout of the first. The gradient of every input is the gradient of the output,
/// without a copy. If a batch norm computes the sum, that norm has the gradient of the other input, because
/// it is zero where the ReLU after the sum is.
class Add final : public CudnnLayer {
 public:
  Add(std::shared_ptr<Device> device, const LayerSite& site) : CudnnLayer(std::move(device), site) {
    if (site.computed_by != nullptr) {
      share_output(dynamic_cast<CudnnTensor&>(site.computed_by->output()));
      return;
    }
    const CudnnTensor& output = make_output(input().shape(), input_order());
    std::vector<const void*> terms;
    for (std::size_t i = 0; i < this->site().inputs.size(); ++i) {
      terms.push_back(reordered(forward_, input(i), input_order()).data());
    }
    forward_.emplace_back([this, terms, y = output.data(), n = static_cast<std::int64_t>(output.elements())] {
      sum(terms, y, element(), n, stream());
    });
  }

  Tensor* input_gradient(std::size_t i) override {
    LayerKernel* norm = site().computed_by;
    if (norm == nullptr || site().inputs.at(i) == &norm->output()) return CudnnLayer::input_gradient(i);
    return norm->input_gradient(1);
  }

 private:
  void connect() override {
    const CudnnTensor gradient = output_gradient(backward_data_, result().order());
    for (std::size_t i = 0; i < site().inputs.size(); ++i) {
      if (wanted(i)) share_input_gradient(gradient, i);
    }
  }
};

}  // namespace

std::unique_ptr<LayerKernel> make_add(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Add>(std::move(device), site);
}

namespace {

/// A view of the input's elements in row-major order; a copy only if channels are innermost or the element
/// type differs.
class Reshape final : public CudnnLayer {
 public:
  Reshape(std::shared_ptr<Device> device, const LayerSite& site) : CudnnLayer(std::move(device), site) {
    share_output(CudnnTensor(reordered(forward_, input(), Order::row_major), batched(layer().output)));
  }

 private:
  void connect() override {
    if (!wanted()) return;
    const CudnnTensor gradient = output_gradient(backward_data_, Order::row_major);
    share_input_gradient(CudnnTensor(gradient, input().shape()));
  }
};

}  // namespace

std::unique_ptr<LayerKernel> make_reshape(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Reshape>(std::move(device), site);
}

}  // namespace stepcast::cudnn
