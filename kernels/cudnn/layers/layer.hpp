#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "kernels/cudnn/runtime/tensor.hpp"
#include "kernels/network/layer_table.hpp"
#include "models/network/layer.hpp"

namespace stepcast::cudnn {

/// A layer of calls that each start work on the device's stream and return at once.
class CudnnLayer : public ListedPasses {
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
  std::string notes() const override { return notes_; }

  /// Conversions of parameters in a pass: of weights in the forward pass, of gradients in backward_weights.
  std::vector<Conversion> conversions(Pass pass) const;
  /// Whether the passes convert by themselves; if not, a group of layers does (kernels/cudnn/backend.hpp).
  void set_converts(bool converts) { converts_ = converts; }

 protected:
  /// A parameter with fp32 master weights. If activations have a lower precision, the passes use a
  /// low-precision copy of the weights and compute a low-precision gradient.
  struct Parameter {
    Shape shape;
    bool channels_last = false;  ///< a filter that is stored {k, spatial, c} instead of {k, c, spatial}
    float *value = nullptr, *gradient = nullptr;
    CudnnTensor low_precision_value, low_precision_gradient;

    std::size_t elements() const { return element_count(shape); }
  };

  std::shared_ptr<Device> device() const { return device_; }
  cudaStream_t stream() const { return device_->stream.get(); }
  Element element() const { return device_->element(); }
  const CudnnTensor& input(std::size_t i = 0) const { return *inputs_.at(i); }
  /// Layout of tensors with this shape: the options' layout for images, row-major for all others.
  Order image_order(const Shape& shape) const;
  /// Layout of the input.
  Order input_order() const;

  const CudnnTensor& make_output(const Shape& shape, Order order = Order::row_major);
  void share_output(const CudnnTensor& output) { output_ = output; }
  const CudnnTensor& result() const { return output_; }
  /// Adds the next of the layer's parameters; call it for all of them, in order, before the first use. The
  /// reference stays valid.
  Parameter& add_parameter(bool channels_last = false);
  Parameter& parameter(std::size_t i) { return parameters_.at(i); }
  /// Adds a call that makes the low-precision copy of a parameter, if the precision needs one.
  void cast_weights(Steps& steps, Parameter& parameter);
  /// The weights that products read: the master weights or their low-precision copy.
  const void* weight_operand(const Parameter& parameter) const;
  /// Memory for the gradient that products write: the master gradient or its low-precision copy.
  void* gradient_operand(Parameter& parameter) const;
  /// Adds a call that converts the low-precision gradient to the master gradient, if the precision needs it.
  void cast_gradient(Steps& steps, Parameter& parameter);

  const CudnnTensor& make_input_gradient(const Shape& shape, Order order, std::size_t input = 0);
  void share_input_gradient(const CudnnTensor& gradient, std::size_t input = 0);
  /// The output's gradient, summed over the layers that read the output, in this layout; the first call adds
  /// the sum to `steps`.
  CudnnTensor output_gradient(Steps& steps, Order order);

  /// `tensor` itself if it has this layout and the layer's element type, else a copy that a call in `steps`
  /// (or in an earlier pass) makes.
  CudnnTensor reordered(Steps& steps, const CudnnTensor& tensor, Order order);
  CudnnTensor scratch(const Shape& shape, Order order = Order::row_major) const;
  /// An fp32 tensor, whatever the layer's element type.
  CudnnTensor float_scratch(const Shape& shape) const;
  /// The elements of an fp32 tensor, in device memory.
  static float* float_data(const CudnnTensor& tensor) { return static_cast<float*>(tensor.data()); }
  void note(const std::string& text);

 private:
  struct Reordered {
    void* from;
    CudnnTensor to;
  };

  std::shared_ptr<Device> device_;
  std::vector<CudnnTensor*> inputs_;
  CudnnTensor output_;
  std::deque<Parameter> parameters_;
  std::vector<CudnnTensor> output_gradients_;
  std::vector<std::unique_ptr<CudnnTensor>> input_gradients_;
  std::unique_ptr<CudnnTensor> gradient_sum_;
  std::vector<Reordered> reordered_;
  std::string notes_;
  bool converts_ = true;
};

/// A function that makes a kernel; the table in backend.cpp maps kinds of layers to these functions.
using MakeKernel = std::unique_ptr<LayerKernel>(std::shared_ptr<Device>, const LayerSite&);
MakeKernel make_convolution, make_dense, make_embedding, make_position_embedding, make_class_token,
    make_first_token, make_batch_norm, make_layer_norm, make_activation, make_pool, make_add, make_up_sample,
    make_reshape, make_dropout, make_recurrent, make_attention, make_softmax_loss, make_element_loss;
// Layers of partitioned samples and networks, which need data of other devices.
MakeKernel make_spatial_convolution, make_spatial_pool, make_synchronized_batch_norm,
    make_vocab_parallel_loss;

/// The windows of a pooling layer between two images (windows.cpp).
/// @throws InputError for windows of more than 65536 elements
PoolShape pool_shape(const Layer& layer, const std::vector<std::int64_t>& pad_before, const CudnnTensor& from,
                     const CudnnTensor& to);

using RnnDesc = Owned<cudnnRNNDescriptor_t, cudnnDestroyRNNDescriptor>;
using SequenceDesc = Owned<cudnnRNNDataDescriptor_t, cudnnDestroyRNNDataDescriptor>;

/// cuDNN's descriptor of an LSTM or a GRU: standard algorithm, one bias per gate, sums in fp32.
/// @param dropout  cuDNN requires one even without dropout
RnnDesc describe_rnn(const Layer& layer, Element element, cudnnMathType_t math,
                     cudnnDropoutDescriptor_t dropout);

/// cuDNN's descriptor of `batch` sequences {steps, features} of equal length, row-major.
SequenceDesc describe_sequences(Element element, std::int64_t batch, std::int64_t steps,
                                std::int64_t features);

}  // namespace stepcast::cudnn
