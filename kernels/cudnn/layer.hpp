#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/cudnn/tensor.hpp"

namespace stepcast::cudnn {

/// What a pass does, in order; every step only starts work on the device's stream.
using Steps = std::vector<std::function<void()>>;

/// A layer as three lists of steps. Each kind of layer fills `forward_` when it is built and the other two in
/// `connect`; everything else is the same for all kinds and stands here.
class CudnnLayer : public LayerKernel {
 public:
  CudnnLayer(std::shared_ptr<Device> device, const LayerSite& site);

  Tensor& output() override { return output_; }
  std::vector<std::size_t> stored_elements() const override;
  void bind(std::size_t parameter, float* value, float* gradient) override;
  std::vector<float> read_parameter(std::size_t parameter) const override;
  void write_parameter(std::size_t parameter, const std::vector<float>& values) override;
  std::vector<float> read_gradient(std::size_t parameter) const override;
  void connect_backward(const std::vector<Tensor*>& output_gradients,
                        const std::vector<bool>& wanted) override;
  Tensor* input_gradient(std::size_t input) override;
  bool has(Pass pass) const override;
  void run(Pass pass) override;
  Tensor* targets() override { return nullptr; }
  double loss() const override { return 0; }
  std::string notes() const override { return notes_; }

 protected:
  /// Master copies are fp32. Where activations are shorter, the passes work on a short copy of the value and
  /// give a short gradient.
  struct Parameter {
    Shape shape;
    bool channels_last = false;  ///< stored {k, spatial, c} instead of {k, c, spatial}
    float *value = nullptr, *gradient = nullptr;
    CudnnTensor short_value, short_gradient;

    std::size_t elements() const { return static_cast<std::size_t>(element_count(shape)); }
  };

  virtual void connect() = 0;

  const Layer& layer() const { return layer_; }
  const LayerSite& site() const { return site_; }
  std::int64_t batch() const { return site_.batch; }
  std::shared_ptr<Device> device() const { return device_; }
  cudaStream_t stream() const { return device_->stream.get(); }
  Element element() const { return device_->element(); }
  const CudnnTensor& input(std::size_t i = 0) const { return *inputs_.at(i); }
  /// {batch, sample...}
  Shape batched(const Shape& sample) const;
  /// Of tensors of that shape in this layer: images have the order of the options, all others are row-major.
  Order image_order(const Shape& shape) const;
  /// As the input lies, if it is an image.
  Order input_order() const;

  const CudnnTensor& make_output(const Shape& shape, Order order = Order::row_major);
  void share_output(const CudnnTensor& output) { output_ = output; }
  const CudnnTensor& result() const { return output_; }
  /// For all of the layer's parameters in order, before the first use. The reference stays valid.
  Parameter& add_parameter(bool channels_last = false);
  Parameter& parameter(std::size_t i) { return parameters_.at(i); }
  /// Index of the model's parameter of that name, or -1.
  int find_parameter(const std::string& name) const;
  /// What products read: the master itself, or its short copy, which a step in `steps` makes.
  void shorten(Steps& steps, Parameter& parameter);
  const void* product_value(const Parameter& parameter) const;
  /// Where products put the gradient, and the step that brings it to the master's.
  void* product_gradient(Parameter& parameter) const;
  void lengthen_gradient(Steps& steps, Parameter& parameter);

  bool wanted(std::size_t input = 0) const { return wanted_.at(input); }
  const CudnnTensor& make_input_gradient(const Shape& shape, Order order, std::size_t input = 0);
  void pass_gradient_on(const CudnnTensor& gradient, std::size_t input = 0);
  /// Sum over the consumers, in this order; the first call puts the sum into `steps`.
  CudnnTensor output_gradient(Steps& steps, Order order);

  /// `tensor` itself if it lies so and has the layer's element, else a copy that a step in `steps` (or in an
  /// earlier pass) makes.
  CudnnTensor arranged(Steps& steps, const CudnnTensor& tensor, Order order);
  CudnnTensor scratch(const Shape& shape, Order order = Order::row_major) const;
  /// fp32, whatever the layer's element.
  CudnnTensor float_scratch(const Shape& shape) const;
  void note(const std::string& text);

  Steps forward_, backward_data_, backward_weights_;

 private:
  struct Arranged {
    void* from;
    CudnnTensor to;
  };

  std::shared_ptr<Device> device_;
  LayerSite site_;
  Layer layer_;
  std::vector<CudnnTensor*> inputs_;
  CudnnTensor output_;
  std::deque<Parameter> parameters_;
  std::vector<CudnnTensor> output_gradients_;
  std::vector<bool> wanted_;
  std::vector<std::unique_ptr<CudnnTensor>> input_gradients_;
  std::unique_ptr<CudnnTensor> joined_;
  std::vector<Arranged> arranged_;
  std::string notes_;
};

}  // namespace stepcast::cudnn
