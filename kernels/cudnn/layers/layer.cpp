#include "kernels/cudnn/layers/layer.hpp"

#include <stdexcept>

#include "kernels/cudnn/cuda/elements.hpp"

namespace stepcast::cudnn {
CudnnLayer::CudnnLayer(std::shared_ptr<Device> device, const LayerSite& site)
    : ListedPasses(site), device_(std::move(device)) {
  for (Tensor* input : site.inputs) inputs_.push_back(&dynamic_cast<CudnnTensor&>(*input));
  input_gradients_.resize(inputs_.size());
}

void CudnnLayer::connect_backward(const std::vector<Tensor*>& output_gradients,
                                  const std::vector<bool>& wanted) {
  for (Tensor* gradient : output_gradients) {
    output_gradients_.push_back(dynamic_cast<CudnnTensor&>(*gradient));  // copies only the handle
  }
  wanted_ = wanted;
  connect();
}

Tensor* CudnnLayer::input_gradient(std::size_t input) {
  return input_gradients_.at(input).get();
}

Order CudnnLayer::image_order(const Shape& shape) const {
  const bool image = shape.size() == 4;
  return image && device_->options.layout == ImageLayout::nhwc ? Order::channels_last : Order::row_major;
}

Order CudnnLayer::input_order() const {
  return input().order();
}

const CudnnTensor& CudnnLayer::make_output(const Shape& shape, Order order) {
  output_ = CudnnTensor(device_, shape, element(), order);
  return output_;
}

const CudnnTensor& CudnnLayer::make_input_gradient(const Shape& shape, Order order, std::size_t input) {
  input_gradients_.at(input) = std::make_unique<CudnnTensor>(device_, shape, element(), order);
  return *input_gradients_.at(input);
}

void CudnnLayer::share_input_gradient(const CudnnTensor& gradient, std::size_t input) {
  input_gradients_.at(input) = std::make_unique<CudnnTensor>(gradient);
}

CudnnTensor CudnnLayer::output_gradient(Steps& steps, Order order) {
  if (output_gradients_.size() == 1) return reordered(steps, output_gradients_[0], order);
  if (gradient_sum_) return reordered(steps, *gradient_sum_, order);
  gradient_sum_ = std::make_unique<CudnnTensor>(scratch(output_.shape(), order));
  std::vector<const void*> terms;
  for (const CudnnTensor& gradient : output_gradients_) {
    terms.push_back(reordered(steps, gradient, order).data());
  }
  steps.emplace_back([this, terms, to = gradient_sum_->data(), n = gradient_sum_->elements()] {
    sum(terms, to, element(), n, stream());
  });
  return *gradient_sum_;
}

CudnnTensor CudnnLayer::reordered(Steps& steps, const CudnnTensor& tensor, Order order) {
  if (tensor.element() == element() && tensor.is_stored_as(order)) return tensor.under(order);
  for (const Reordered& done : reordered_) {
    if (done.from == tensor.data() && done.to.shape() == tensor.shape() && done.to.is_stored_as(order)) {
      return done.to.under(order);
    }
  }
  const CudnnTensor to = scratch(tensor.shape(), order);
  reordered_.push_back({tensor.data(), to});
  steps.emplace_back([this, tensor, to, move = move_between(tensor, to)] {
    move_elements(move, tensor.data(), to.data(), stream());
  });
  return to;
}

CudnnTensor CudnnLayer::scratch(const Shape& shape, Order order) const {
  return {device_, shape, element(), order};
}

CudnnTensor CudnnLayer::float_scratch(const Shape& shape) const {
  return {device_, shape, Element::f32};
}

void CudnnLayer::note(const std::string& text) {
  notes_ += notes_.empty() ? text : "; " + text;
}

namespace {

/// Converts filters between {k, c, spatial} and {k, spatial, c}.
std::vector<float> transposed(const std::vector<float>& values, const Shape& shape, bool to_channels_last) {
  const std::size_t filters = shape[0], channels = shape[1];
  const std::size_t taps = values.size() / (filters * channels);
  std::vector<float> result(values.size());
  for (std::size_t k = 0; k < filters; ++k) {
    for (std::size_t c = 0; c < channels; ++c) {
      for (std::size_t t = 0; t < taps; ++t) {
        const std::size_t first = (k * channels + c) * taps + t, last = (k * taps + t) * channels + c;
        result[to_channels_last ? last : first] = values[to_channels_last ? first : last];
      }
    }
  }
  return result;
}

}  // namespace

std::vector<std::size_t> CudnnLayer::stored_elements() const {
  std::vector<std::size_t> elements;
  for (const Parameter& parameter : parameters_) elements.push_back(parameter.elements());
  return elements;
}

void CudnnLayer::bind(std::size_t parameter, float* value, float* gradient) {
  parameters_.at(parameter).value = value;
  parameters_.at(parameter).gradient = gradient;
}

std::vector<float> CudnnLayer::read_parameter(std::size_t parameter) const {
  const Parameter& p = parameters_.at(parameter);
  const std::vector<float> values = download(p.value, p.elements(), stream());
  return p.channels_last ? transposed(values, p.shape, false) : values;
}

void CudnnLayer::write_parameter(std::size_t parameter, const std::vector<float>& values) {
  const Parameter& p = parameters_.at(parameter);
  if (values.size() != p.elements())
    throw std::invalid_argument("write_parameter: expected as many values as the parameter has elements");
  upload(p.channels_last ? transposed(values, p.shape, true) : values, p.value, stream());
}

std::vector<float> CudnnLayer::read_gradient(std::size_t parameter) const {
  const Parameter& p = parameters_.at(parameter);
  const std::vector<float> values = download(p.gradient, p.elements(), stream());
  return p.channels_last ? transposed(values, p.shape, false) : values;
}

CudnnLayer::Parameter& CudnnLayer::add_parameter(bool channels_last) {
  Parameter parameter;
  parameter.shape = layer().parameters.at(parameters_.size()).shape;
  parameter.channels_last = channels_last;
  return parameters_.emplace_back(std::move(parameter));
}

void CudnnLayer::cast_weights(Steps& steps, Parameter& parameter) {
  if (element() == Element::f32) return;
  parameter.low_precision_value = scratch(parameter.shape);
  steps.emplace_back([this, &parameter] {
    if (!converts_) return;
    convert(parameter.value, Element::f32, parameter.low_precision_value.data(), element(),
            parameter.elements(), stream());
  });
}

const void* CudnnLayer::weight_operand(const Parameter& parameter) const {
  return element() == Element::f32 ? parameter.value : parameter.low_precision_value.data();
}

void* CudnnLayer::gradient_operand(Parameter& parameter) const {
  if (element() == Element::f32) return parameter.gradient;
  return parameter.low_precision_gradient.data();
}

void CudnnLayer::cast_gradient(Steps& steps, Parameter& parameter) {
  if (element() == Element::f32) return;
  parameter.low_precision_gradient = scratch(parameter.shape);
  steps.emplace_back([this, &parameter] {
    if (!converts_) return;
    convert(parameter.low_precision_gradient.data(), element(), parameter.gradient, Element::f32,
            parameter.elements(), stream());
  });
}

std::vector<Conversion> CudnnLayer::conversions(Pass pass) const {
  std::vector<Conversion> list;
  for (const Parameter& one : parameters_) {
    const std::int64_t count = one.elements();
    void* const weights = one.low_precision_value.data();
    const void* const gradient = one.low_precision_gradient.data();
    if (pass == Pass::forward && weights != nullptr) list.push_back({one.value, weights, count});
    if (pass == Pass::backward_weights && gradient != nullptr)
      list.push_back({gradient, one.gradient, count});
  }
  return list;
}

}  // namespace stepcast::cudnn
