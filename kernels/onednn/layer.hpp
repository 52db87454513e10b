#pragma once

#include <functional>
#include <memory>
#include <unordered_map>
#include <vector>

#include "kernels/backend.hpp"
#include "kernels/onednn/tensor.hpp"

namespace stepcast::onednn {

/// What a pass does, in order.
using Steps = std::vector<std::function<void()>>;
using Arguments = std::unordered_map<int, dnnl::memory>;

/// A layer as three lists of steps. Each kind of layer fills `forward_` when it is built and the other two in
/// `connect`; everything else is the same for all kinds and stands here.
class OnednnLayer : public LayerKernel {
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
  bool has(Pass pass) const override;
  void run(Pass pass) override;
  Tensor* targets() override { return nullptr; }
  double loss() const override { return 0; }

 protected:
  struct Parameter {
    Desc as_model;  ///< row-major order of the model, in the dimensions of `value`
    dnnl::memory value, gradient;
    float* data() const { return static_cast<float*>(value.get_data_handle()); }
    float* gradient_data() const { return static_cast<float*>(gradient.get_data_handle()); }
  };

  virtual void connect() = 0;

  const Layer& layer() const { return layer_; }
  std::int64_t batch() const { return batch_; }
  const LayerSite& site() const { return site_; }
  const dnnl::engine& engine() const { return library_->engine; }
  std::shared_ptr<Library> library() const { return library_; }
  const OnednnTensor& input(std::size_t i = 0) const { return *inputs_.at(i); }
  /// {batch, sample...}
  Shape batched(const Shape& sample) const;

  const OnednnTensor& make_output(const Desc& desc);
  void share_output(std::shared_ptr<OnednnTensor> output) { output_ = std::move(output); }
  Desc output_desc() const { return output_->desc(); }
  /// For all of the layer's parameters in order, before the first use.
  const Parameter& add_parameter(const Desc& stored, const Desc& as_model);
  const Parameter& parameter(std::size_t i) const { return parameters_.at(i); }
  /// Index of the model's parameter of that name, or -1.
  int find_parameter(const std::string& name) const;

  bool wanted(std::size_t input = 0) const { return wanted_.at(input); }
  const OnednnTensor& make_input_gradient(const Desc& desc, std::size_t input = 0);
  void pass_gradient_on(std::shared_ptr<OnednnTensor> gradient, std::size_t input = 0);

  /// Sum over the consumers, in this layout; the first call puts the sum into `steps`.
  dnnl::memory output_gradient(Steps& steps, const Desc& desc);
  /// As it came from the one reader; of several, their sum, by `steps`.
  dnnl::memory joined_output_gradient(Steps& steps);
  /// The same in the layout in which it came, for layers that only pass it on.
  std::shared_ptr<OnednnTensor> joined_gradient(Steps& steps);

  /// `memory` itself if it has this layout, else a copy that a step in `steps` (or in an earlier pass) makes.
  dnnl::memory arranged(Steps& steps, const dnnl::memory& memory, const Desc& desc);
  void call(Steps& steps, const dnnl::primitive& primitive, Arguments arguments) const;
  dnnl::memory scratch(const Desc& desc);

  Steps forward_, backward_data_, backward_weights_;

 private:
  struct Arranged {
    dnnl::memory from, to;
  };

  std::shared_ptr<Library> library_;
  LayerSite site_;
  Layer layer_;
  std::int64_t batch_;
  std::vector<OnednnTensor*> inputs_;
  std::shared_ptr<OnednnTensor> output_;
  std::vector<Parameter> parameters_;
  std::vector<OnednnTensor*> output_gradients_;
  std::vector<bool> wanted_;
  std::vector<std::shared_ptr<OnednnTensor>> input_gradients_;
  std::shared_ptr<OnednnTensor> joined_;
  std::vector<Arranged> arranged_;
  std::vector<std::shared_ptr<OnednnTensor>> scratch_;
};

}  // namespace stepcast::onednn
