#include "kernels/cudnn/kinds.hpp"

namespace stepcast::cudnn {
namespace {

/// Another view of the same elements in row-major order; a copy only where channels lie innermost or another
/// element is wanted.
class Reshape final : public CudnnLayer {
 public:
  Reshape(std::shared_ptr<Device> device, const LayerSite& site) : CudnnLayer(std::move(device), site) {
    share_output(CudnnTensor(arranged(forward_, input(), Order::row_major), batched(layer().output)));
  }

 private:
  void connect() override {
    if (!wanted()) return;
    const CudnnTensor gradient = output_gradient(backward_data_, Order::row_major);
    pass_gradient_on(CudnnTensor(gradient, input().shape()));
  }
};

}  // namespace

std::unique_ptr<LayerKernel> make_reshape(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Reshape>(std::move(device), site);
}

}  // namespace stepcast::cudnn
