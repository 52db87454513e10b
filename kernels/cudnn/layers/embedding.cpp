#include "kernels/cudnn/layers/layer.hpp"

namespace stepcast::cudnn {
namespace {

/// Copies a row of the table for every token. The gradient is dense, as in most frameworks: zeros plus the
/// sums of the rows that were read, added by atomics in no fixed order.
class Embedding final : public CudnnLayer {
 public:
  Embedding(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site), table_(add_parameter()) {
    if (input().element() != Element::f32 || !input().is_stored_as(Order::row_major)) {
      throw GpuError(
          "embedding: expected row numbers in fp32 from the network's input, got the output of another "
          "layer");
    }
    const CudnnTensor& output = make_output(batched(layer().output));
    forward_.emplace_back([this, y = output.data()] {
      embedding_forward(tokens(), table_.value, y, element(), count(), columns(), stream());
    });
  }

 private:
  const float* tokens() const { return static_cast<const float*>(input().data()); }
  std::int64_t count() const { return static_cast<std::int64_t>(input().elements()); }
  std::int64_t columns() const { return layer().output.back(); }

  void connect() override {
    const CudnnTensor dy = output_gradient(backward_weights_, Order::row_major);
    backward_weights_.emplace_back([this, dy] {
      check(cudaMemsetAsync(table_.gradient, 0, table_.elements() * sizeof(float), stream()),
            "cudaMemsetAsync");
      embedding_backward(tokens(), dy.data(), table_.gradient, element(), count(), columns(), stream());
    });
  }

  Parameter& table_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_embedding(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Embedding>(std::move(device), site);
}

}  // namespace stepcast::cudnn
