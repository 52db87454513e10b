#pragma once

#include "kernels/cudnn/layers/layer.hpp"

namespace stepcast::cudnn {

/// A loss whose mean stays on the device until `loss` reads it.
class LossLayer : public CudnnLayer {
 public:
  LossLayer(std::shared_ptr<Device> device, const LayerSite& site, const Shape& target_shape)
      : CudnnLayer(std::move(device), site),
        source_(reordered(forward_, input(), Order::row_major)),
        targets_(this->device(), target_shape, Element::f32),
        loss_(allocate_bytes(sizeof(double), stream())) {}

  Tensor* targets() override { return &targets_; }

  double loss() const override {
    double value = 0;
    check(cudaMemcpyAsync(&value, loss_.get(), sizeof(value), cudaMemcpyDeviceToHost, stream()),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    return value;
  }

 protected:
  const float* target_values() const { return static_cast<const float*>(targets_.data()); }
  double* loss_value() const { return static_cast<double*>(loss_.get()); }

  CudnnTensor source_, targets_;

 private:
  std::shared_ptr<void> loss_;
};

/// Shape of the class indices: one per row of scores.
inline Shape rows_of(const LayerSite& site) {
  Shape shape = site.inputs.at(0)->shape();
  shape.back() = 1;
  return shape;
}

}  // namespace stepcast::cudnn
