#include "check/reference/reference.hpp"

namespace stepcast::reference {

Array embedding(const Case& c) {
  const std::size_t columns = c.layer.output.back();
  Array y(output_elements(c));
  for (std::size_t i = 0; i < y.size(); ++i) {
    y[i] = c.parameters[0][static_cast<std::size_t>(c.inputs[0][i / columns]) * columns + i % columns];
  }
  return y;
}

void embedding_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const std::size_t columns = c.layer.output.back();
  for (std::size_t i = 0; i < output_gradient.size(); ++i) {
    const auto row = static_cast<std::size_t>(c.inputs[0][i / columns]);
    gradients.parameters[0][row * columns + i % columns] += output_gradient[i];
  }
}

Array position_embedding(const Case& c) {
  const std::size_t sample = count(c.layer.input);
  Array y = c.inputs[0];
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += c.parameters[0][i % sample];
  return y;
}

void position_embedding_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const std::size_t sample = count(c.layer.input);
  gradients.inputs[0] = output_gradient;
  for (std::size_t i = 0; i < output_gradient.size(); ++i)
    gradients.parameters[0][i % sample] += output_gradient[i];
}

Array class_token(const Case& c) {
  const std::size_t sample = count(c.layer.output), token = c.parameters[0].size();
  Array y;
  for (std::size_t i = 0; i < output_elements(c); ++i) {
    const std::size_t b = i / sample, at = i % sample;
    y.push_back(at < token ? c.parameters[0][at] : c.inputs[0][b * (sample - token) + at - token]);
  }
  return y;
}

void class_token_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  const std::size_t sample = count(c.layer.output), token = c.parameters[0].size();
  for (std::size_t i = 0; i < output_gradient.size(); ++i) {
    const std::size_t b = i / sample, at = i % sample;
    (at < token ? gradients.parameters[0][at] : gradients.inputs[0][b * (sample - token) + at - token]) +=
        output_gradient[i];
  }
}

namespace {

/// Place in the input of element i of the first tokens.
std::size_t place_of_first(const Case& c, std::size_t i) {
  const std::size_t token = count(c.layer.output);
  return i / token * count(c.layer.input) + i % token;
}

}  // namespace

Array first_token(const Case& c) {
  Array y;
  for (std::size_t i = 0; i < output_elements(c); ++i) y.push_back(c.inputs[0][place_of_first(c, i)]);
  return y;
}

void first_token_backward(const Case& c, const Array& output_gradient, Gradients& gradients) {
  for (std::size_t i = 0; i < output_gradient.size(); ++i)
    gradients.inputs[0][place_of_first(c, i)] = output_gradient[i];
}

}  // namespace stepcast::reference
