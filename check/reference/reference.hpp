#pragma once

#include <cstdint>
#include <vector>

#include "models/network/layer.hpp"
#include "strategies/arithmetic/optimizer.hpp"

/// Reference implementations of all layers: plain loops in double precision, which every backend is compared
/// with. Their own gradients are compared with finite differences. Arrays are row-major, {batch, shape of a
/// sample...}; parameters have the model's shapes.
namespace stepcast::reference {

using Array = std::vector<double>;

/// A layer with its inputs, parameters and targets.
struct Case {
  Layer layer;
  std::int64_t batch = 1;
  std::vector<Array> inputs;
  std::vector<Array> parameters;
  Array targets;  ///< losses: the shape of the input, or one class index per row (softmax_cross_entropy)
  std::uint32_t dropout_key = 0;  ///< key of the dropout mask (kernels/network/dropout_mask.hpp)
};

struct Gradients {
  std::vector<Array> inputs, parameters;  ///< shapes as in Case; running statistics have zeros
};

/// The layer's output in training; for a loss, one element: its mean.
/// @throws std::invalid_argument for kinds without a reference (such as rms_norm)
Array forward(const Case& c);

/// Gradients of sum(output * output_gradient) with respect to inputs and parameters.
Gradients backward(const Case& c, const Array& output_gradient);

/// One update by an optimizer in double precision; changes `value` and `states` (as many arrays as this kind
/// of optimizer has).
void update(const Optimizer& optimizer, const Array& gradient, std::int64_t step, Array& value,
            std::vector<Array>& states);

// One pair of functions per family of layers; the table in reference.cpp maps kinds to them. Backward
// functions add to `gradients`, which are zero at first.
Array convolution(const Case& c);
void convolution_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array locally_connected(const Case& c);
void locally_connected_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array pool(const Case& c);
void pool_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array dense(const Case& c);
void dense_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array embedding(const Case& c);
void embedding_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array position_embedding(const Case& c);
void position_embedding_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array class_token(const Case& c);
void class_token_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array first_token(const Case& c);
void first_token_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array normalization(const Case& c);
void normalization_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array activation(const Case& c);
void activation_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array add(const Case& c);
void add_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array up_sample(const Case& c);
void up_sample_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array experts(const Case& c);
void experts_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array dropout(const Case& c);
void dropout_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array recurrent(const Case& c);
void recurrent_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array attention(const Case& c);
void attention_backward(const Case& c, const Array& output_gradient, Gradients& gradients);
Array loss(const Case& c);
void loss_backward(const Case& c, const Array& output_gradient, Gradients& gradients);

inline std::size_t count(const Shape& shape) {
  std::size_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

inline std::size_t output_elements(const Case& c) {
  return c.batch * count(c.layer.output);
}

}  // namespace stepcast::reference
