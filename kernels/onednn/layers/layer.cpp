#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {

OnednnLayer::OnednnLayer(std::shared_ptr<Library> library, const LayerSite& site)
    : ListedPasses(site), library_(std::move(library)) {
  for (Tensor* input : site.inputs) inputs_.push_back(&dynamic_cast<OnednnTensor&>(*input));
  input_gradients_.resize(inputs_.size());
}

std::vector<std::size_t> OnednnLayer::stored_elements() const {
  std::vector<std::size_t> elements;
  for (const Parameter& parameter : parameters_) {
    elements.push_back(parameter.value.get_desc().get_size() / sizeof(float));
  }
  return elements;
}

void OnednnLayer::bind(std::size_t parameter, float* value, float* gradient) {
  parameters_.at(parameter).value.set_data_handle(value);
  parameters_.at(parameter).gradient.set_data_handle(gradient);
}

std::vector<float> OnednnLayer::read_parameter(std::size_t parameter) const {
  return read_as(*library_, parameters_.at(parameter).value, parameters_.at(parameter).as_model);
}

void OnednnLayer::write_parameter(std::size_t parameter, const std::vector<float>& values) {
  write_as(*library_, parameters_.at(parameter).value, parameters_.at(parameter).as_model, values);
}

std::vector<float> OnednnLayer::read_gradient(std::size_t parameter) const {
  return read_as(*library_, parameters_.at(parameter).gradient, parameters_.at(parameter).as_model);
}

void OnednnLayer::connect_backward(const std::vector<Tensor*>& output_gradients,
                                   const std::vector<bool>& wanted) {
  for (Tensor* gradient : output_gradients) {
    output_gradients_.push_back(&dynamic_cast<OnednnTensor&>(*gradient));
  }
  wanted_ = wanted;
  connect();
}

const OnednnTensor& OnednnLayer::make_output(const Desc& desc) {
  output_ = std::make_shared<OnednnTensor>(library_, desc);
  return *output_;
}

const OnednnLayer::Parameter& OnednnLayer::add_parameter(const Desc& stored, const Desc& as_model) {
  parameters_.reserve(layer().parameters.size());  // so that references stay valid
  return parameters_.emplace_back(Parameter{
      as_model, {stored, library_->engine, DNNL_MEMORY_NONE}, {stored, library_->engine, DNNL_MEMORY_NONE}});
}

const OnednnTensor& OnednnLayer::make_input_gradient(const Desc& desc, std::size_t input) {
  input_gradients_.at(input) = std::make_shared<OnednnTensor>(library_, desc);
  return *input_gradients_.at(input);
}

void OnednnLayer::share_input_gradient(std::shared_ptr<OnednnTensor> gradient, std::size_t input) {
  input_gradients_.at(input) = std::move(gradient);
}

dnnl::memory OnednnLayer::output_gradient(Steps& steps, const Desc& desc) {
  if (output_gradients_.size() == 1) return reordered(steps, output_gradients_[0]->memory(), desc);
  if (gradient_sum_) return reordered(steps, gradient_sum_->memory(), desc);
  gradient_sum_ = std::make_shared<OnednnTensor>(library_, desc);
  std::vector<Desc> sources;
  Arguments arguments{{DNNL_ARG_DST, gradient_sum_->memory()}};
  for (std::size_t i = 0; i < output_gradients_.size(); ++i) {
    const dnnl::memory source = reordered(steps, output_gradients_[i]->memory(), desc);
    sources.push_back(source.get_desc());
    arguments[DNNL_ARG_MULTIPLE_SRC + i] = source;
  }
  const std::vector<float> scales(sources.size(), 1);
  call(steps, dnnl::sum(dnnl::sum::primitive_desc(desc, scales, sources, engine())), arguments);
  return gradient_sum_->memory();
}

dnnl::memory OnednnLayer::output_gradient(Steps& steps) {
  if (output_gradients_.size() == 1) return output_gradients_[0]->memory();
  return output_gradient(steps, output_desc());
}

std::shared_ptr<OnednnTensor> OnednnLayer::output_gradient_tensor(Steps& steps) {
  if (output_gradients_.size() == 1) return std::make_shared<OnednnTensor>(*output_gradients_[0]);
  output_gradient(steps, output_desc());
  return gradient_sum_;
}

dnnl::memory OnednnLayer::reordered(Steps& steps, const dnnl::memory& memory, const Desc& desc) {
  if (memory.get_desc() == desc) return memory;
  for (const Reordered& done : reordered_) {
    if (done.from.get() == memory.get() && done.to.get_desc() == desc) return done.to;
  }
  dnnl::memory target = scratch(desc);
  reordered_.push_back({memory, target});
  call(steps, dnnl::reorder(memory, target), {{DNNL_ARG_FROM, memory}, {DNNL_ARG_TO, target}});
  return target;
}

void OnednnLayer::call(Steps& steps, const dnnl::primitive& primitive, Arguments arguments) const {
  steps.emplace_back([library = library_, primitive, arguments = std::move(arguments)] {
    primitive.execute(library->stream, arguments);
  });
}

dnnl::memory OnednnLayer::scratch(const Desc& desc) {
  if (desc.data.format_kind != dnnl_blocked)
    return {desc, engine()};  // an opaque format: workspaces, packed weights
  scratch_.push_back(std::make_shared<OnednnTensor>(library_, desc));
  return scratch_.back()->memory();
}

}  // namespace stepcast::onednn
