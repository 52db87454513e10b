#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kernels/network/layer_table.hpp"
#include "kernels/onednn/runtime/tensor.hpp"

namespace stepcast::onednn {

using Arguments = std::unordered_map<int, dnnl::memory>;

/// A layer of oneDNN primitives.
class OnednnLayer : public ListedPasses {
 public:
  OnednnLayer(std::shared_ptr<Library> library, const LayerSite& site);

  Tensor& output() override { return *output_; }
  std::vector<std::size_t> stored_elements() const override;
  void bind(std::size_t parameter, float* value, float* gradient) override;
  std::vector<float> read_parameter(std::size_t parameter) const override;
  void write_parameter(std::size_t parameter, const std::vector<float>& values) override;
  std::vector<float> read_gradient(std::size_t parameter) const override;
  void connect_backward(const std::vector<Tensor*>& output_gradients,
                        const std::vector<bool>& wanted) override;
  Tensor* input_gradient(std::size_t input) override { return input_gradients_.at(input).get(); }

 protected:
  struct Parameter {
    Desc as_model;  ///< the model's row-major layout, in the dimensions of `value`
    dnnl::memory value, gradient;
    float* data() const { return static_cast<float*>(value.get_data_handle()); }
    float* gradient_data() const { return static_cast<float*>(gradient.get_data_handle()); }
  };

  const dnnl::engine& engine() const { return library_->engine; }
  std::shared_ptr<Library> library() const { return library_; }
  const OnednnTensor& input(std::size_t i = 0) const { return *inputs_.at(i); }

  const OnednnTensor& make_output(const Desc& desc);
  void share_output(std::shared_ptr<OnednnTensor> output) { output_ = std::move(output); }
  Desc output_desc() const { return output_->desc(); }
  dnnl::memory output_memory() const { return output_->memory(); }
  /// Adds the next of the layer's parameters; call it for all of them, in order, before the first use.
  const Parameter& add_parameter(const Desc& stored, const Desc& as_model);
  const Parameter& parameter(std::size_t i) const { return parameters_.at(i); }

  const OnednnTensor& make_input_gradient(const Desc& desc, std::size_t input = 0);
  void share_input_gradient(std::shared_ptr<OnednnTensor> gradient, std::size_t input = 0);

  /// The output's gradient, summed over the layers that read the output, in this layout; the first call adds
  /// the sum to `steps`.
  dnnl::memory output_gradient(Steps& steps, const Desc& desc);
  /// The output's gradient in the layout of its only reader, or the sum of several readers' gradients, added
  /// to `steps`.
  dnnl::memory output_gradient(Steps& steps);
  /// The output's gradient as a tensor, for layers that pass it on unchanged.
  std::shared_ptr<OnednnTensor> output_gradient_tensor(Steps& steps);

  /// `memory` itself if it has this layout, else a copy that a call in `steps` (or in an earlier pass) makes.
  dnnl::memory reordered(Steps& steps, const dnnl::memory& memory, const Desc& desc);
  void call(Steps& steps, const dnnl::primitive& primitive, Arguments arguments) const;
  dnnl::memory scratch(const Desc& desc);

 private:
  struct Reordered {
    dnnl::memory from, to;
  };

  std::shared_ptr<Library> library_;
  std::vector<OnednnTensor*> inputs_;
  std::shared_ptr<OnednnTensor> output_;
  std::vector<Parameter> parameters_;
  std::vector<OnednnTensor*> output_gradients_;
  std::vector<std::shared_ptr<OnednnTensor>> input_gradients_;
  std::shared_ptr<OnednnTensor> gradient_sum_;
  std::vector<Reordered> reordered_;
  std::vector<std::shared_ptr<OnednnTensor>> scratch_;
};

/// A function that makes a kernel; the table in backend.cpp maps kinds of layers to these functions.
using MakeKernel = std::unique_ptr<LayerKernel>(std::shared_ptr<Library>, const LayerSite&);
MakeKernel make_convolution, make_locally_connected, make_dense, make_embedding, make_position_embedding,
    make_class_token, make_first_token, make_batch_norm, make_layer_norm, make_activation, make_pool,
    make_add, make_up_sample, make_reshape, make_dropout, make_recurrent, make_attention, make_softmax_loss,
    make_element_loss, make_experts;
// Layers of partitioned samples and networks, which need data of other devices.
MakeKernel make_spatial_locally_connected, make_spatial_convolution, make_spatial_pool,
    make_synchronized_batch_norm, make_vocab_parallel_loss;

}  // namespace stepcast::onednn
