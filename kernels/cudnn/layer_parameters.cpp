#include <stdexcept>

#include "kernels/cudnn/layer.hpp"

// A layer's parameters: where they lie, and their way to the host and to shorter elements.
namespace stepcast::cudnn {
namespace {

/// Between {k, c, spatial} and {k, spatial, c}.
std::vector<float> turned(const std::vector<float>& values, const Shape& shape, bool to_channels_last) {
  const auto filters = static_cast<std::size_t>(shape[0]), channels = static_cast<std::size_t>(shape[1]);
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
  return p.channels_last ? turned(values, p.shape, false) : values;
}

void CudnnLayer::write_parameter(std::size_t parameter, const std::vector<float>& values) {
  const Parameter& p = parameters_.at(parameter);
  if (values.size() != p.elements()) throw std::invalid_argument("write_parameter: wrong number of values");
  upload(p.channels_last ? turned(values, p.shape, true) : values, p.value, stream());
}

std::vector<float> CudnnLayer::read_gradient(std::size_t parameter) const {
  const Parameter& p = parameters_.at(parameter);
  const std::vector<float> values = download(p.gradient, p.elements(), stream());
  return p.channels_last ? turned(values, p.shape, false) : values;
}

CudnnLayer::Parameter& CudnnLayer::add_parameter(bool channels_last) {
  Parameter parameter;
  parameter.shape = layer_.parameters.at(parameters_.size()).shape;
  parameter.channels_last = channels_last;
  return parameters_.emplace_back(std::move(parameter));
}

int CudnnLayer::find_parameter(const std::string& name) const {
  for (std::size_t i = 0; i < layer_.parameters.size(); ++i) {
    if (layer_.parameters[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

void CudnnLayer::shorten(Steps& steps, Parameter& parameter) {
  if (element() == Element::f32) return;
  parameter.short_value = scratch(parameter.shape);
  steps.emplace_back([this, &parameter] {
    convert(parameter.value, Element::f32, parameter.short_value.data(), element(), parameter.elements(),
            stream());
  });
}

const void* CudnnLayer::product_value(const Parameter& parameter) const {
  return element() == Element::f32 ? parameter.value : parameter.short_value.data();
}

void* CudnnLayer::product_gradient(Parameter& parameter) const {
  if (element() == Element::f32) return parameter.gradient;
  return parameter.short_gradient.data();
}

void CudnnLayer::lengthen_gradient(Steps& steps, Parameter& parameter) {
  if (element() == Element::f32) return;
  parameter.short_gradient = scratch(parameter.shape);
  steps.emplace_back([this, &parameter] {
    convert(parameter.short_gradient.data(), element(), parameter.gradient, Element::f32,
            parameter.elements(), stream());
  });
}

}  // namespace stepcast::cudnn
