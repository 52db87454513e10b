#include <cmath>
#include <numbers>

#include "kernels/dropout_mask.hpp"
#include "kernels/reference/kinds.hpp"

namespace stepcast::reference {
namespace {

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

double value(const Layer& layer, double x) {
  switch (layer.kind) {
    case LayerKind::leaky_relu:
      return x > 0 ? x : layer.coefficient * x;
    case LayerKind::sigmoid:
      return sigmoid(x);
    case LayerKind::tanh:
      return std::tanh(x);
    case LayerKind::elu:
      return x > 0 ? x : layer.coefficient * std::expm1(x);
    case LayerKind::gelu:
      return x * 0.5 * (1 + std::erf(x / std::numbers::sqrt2));
    default:
      return x > 0 ? x : 0;
  }
}

double slope(const Layer& layer, double x) {
  const double density = std::exp(-x * x / 2) / std::sqrt(2 * std::numbers::pi);  // of the standard normal
  switch (layer.kind) {
    case LayerKind::leaky_relu:
      return x > 0 ? 1 : layer.coefficient;
    case LayerKind::sigmoid:
      return sigmoid(x) * (1 - sigmoid(x));
    case LayerKind::tanh:
      return 1 - std::tanh(x) * std::tanh(x);
    case LayerKind::elu:
      return x > 0 ? 1 : layer.coefficient * std::exp(x);
    case LayerKind::gelu:
      return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)) + x * density;
    default:
      return x > 0 ? 1 : 0;
  }
}

double kept(const Case& c, std::size_t i) {
  const double share = c.layer.coefficient;
  const bool dropped = dropout_bits(c.dropout_key, static_cast<std::uint32_t>(i)) < dropout_threshold(share);
  return dropped || share >= 1 ? 0 : 1 / (1 - share);
}

/// Index of the input element that output element i of an up_sample repeats.
std::size_t source_of(const Case& c, std::size_t i) {
  const Shape& in = c.layer.input;
  const Shape& out = c.layer.output;
  std::size_t index = 0, scale = 1;
  for (std::size_t d = out.size(); d-- > 0;) {
    const auto factor = d == 0 ? std::size_t{1} : static_cast<std::size_t>(c.layer.window.kernel[d - 1]);
    index += i % static_cast<std::size_t>(out[d]) / factor * scale;
    i /= static_cast<std::size_t>(out[d]);
    scale *= static_cast<std::size_t>(in[d]);
  }
  return index + i * scale;
}

}  // namespace

Array activation(const Case& c) {
  Array y;
  for (const double x : c.inputs[0]) y.push_back(value(c.layer, x));
  return y;
}

void activation_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for (std::size_t i = 0; i < output_gradient.size(); ++i) {
    gradients.inputs[0][i] = output_gradient[i] * slope(c.layer, c.inputs[0][i]);
  }
}

Array add(const Case& c) {
  Array y(c.inputs[0].size());
  for (const Array& x : c.inputs) {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += x[i];
  }
  return y;
}

void add_backward(const Case&, const Array& output_gradient, Gradients& gradients) {
  for (Array& dx : gradients.inputs) dx = output_gradient;
}

Array up_sample(const Case& c) {
  Array y(output_elements(c));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = c.inputs[0][source_of(c, i)];
  return y;
}

void up_sample_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for (std::size_t i = 0; i < output_gradient.size(); ++i) {
    gradients.inputs[0][source_of(c, i)] += output_gradient[i];
  }
}

Array dropout(const Case& c) {
  Array y(c.inputs[0].size());
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = kept(c, i) * c.inputs[0][i];
  return y;
}

void dropout_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for (std::size_t i = 0; i < output_gradient.size(); ++i)
    gradients.inputs[0][i] = kept(c, i) * output_gradient[i];
}

}  // namespace stepcast::reference
