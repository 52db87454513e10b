#include "kernels/reference/kinds.hpp"

namespace stepcast::reference {

Array dense(const Case& c) {
  const auto in = static_cast<std::size_t>(c.layer.input.back());
  const auto out = static_cast<std::size_t>(c.layer.output.back());
  Array y(output_elements(c));
  for (std::size_t row = 0; row < y.size() / out; ++row) {
    for (std::size_t o = 0; o < out; ++o) {
      double sum = c.parameters.size() > 1 ? c.parameters[1][o] : 0;
      for (std::size_t i = 0; i < in; ++i) sum += c.parameters[0][o * in + i] * c.inputs[0][row * in + i];
      y[row * out + o] = sum;
    }
  }
  return y;
}

void dense_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const auto in = static_cast<std::size_t>(c.layer.input.back());
  const auto out = static_cast<std::size_t>(c.layer.output.back());
  for (std::size_t row = 0; row < output_gradient.size() / out; ++row) {
    for (std::size_t o = 0; o < out; ++o) {
      const double dy = output_gradient[row * out + o];
      if (c.parameters.size() > 1) gradients.parameters[1][o] += dy;
      for (std::size_t i = 0; i < in; ++i) {
        gradients.parameters[0][o * in + i] += dy * c.inputs[0][row * in + i];
        gradients.inputs[0][row * in + i] += dy * c.parameters[0][o * in + i];
      }
    }
  }
}

Array embedding(const Case& c) {
  const auto columns = static_cast<std::size_t>(c.layer.output.back());
  Array y(output_elements(c));
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = c.parameters[0][static_cast<std::size_t>(c.inputs[0][i / columns]) * columns + i % columns];
  }
  return y;
}

void embedding_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const auto columns = static_cast<std::size_t>(c.layer.output.back());
  for (std::size_t i = 0; i < output_gradient.size(); ++i) {
    const auto row = static_cast<std::size_t>(c.inputs[0][i / columns]);
    gradients.parameters[0][row * columns + i % columns] += output_gradient[i];
  }
}

}  // namespace stepcast::reference
