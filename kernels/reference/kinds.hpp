#pragma once

#include "kernels/reference/reference.hpp"

namespace stepcast::reference {

// One pair a family of layers; reference.cpp is the table. Backward functions add to `gradients`, which are
// zero.
Array convolution(const Case& c);
void convolution_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array pool(const Case& c);
void pool_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array dense(const Case& c);
void dense_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array embedding(const Case& c);
void embedding_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array normalization(const Case& c);
void normalization_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array activation(const Case& c);
void activation_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array add(const Case& c);
void add_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array up_sample(const Case& c);
void up_sample_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array dropout(const Case& c);
void dropout_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array lstm(const Case& c);
void lstm_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array gru(const Case& c);
void gru_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array attention(const Case& c);
void attention_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array loss(const Case& c);
void loss_backward(const Case& c, const Array& output_gradient, Gradients& gradients);

inline std::size_t count(const Shape& shape) {
  std::size_t product = 1;
  for (const std::int64_t size : shape) product *= static_cast<std::size_t>(size);
  return product;
}

inline std::size_t output_elements(const Case& c) {
  return static_cast<std::size_t>(c.batch) * count(c.layer.output);
}

}  // namespace stepcast::reference
