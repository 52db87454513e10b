#include "kernels/reference/reference.hpp"

#include <stdexcept>

#include "kernels/reference/kinds.hpp"

namespace stepcast::reference {
namespace {

struct Functions {
  Array (*forward)(const Case&);
  void (*backward)(const Case&, const Array&, Gradients&);
};

Array reshape(const Case& c) {
  return c.inputs.at(0);
}

void reshape_backward(const Case&, const Array& output_gradient, Gradients& gradients) {
  gradients.inputs.at(0) = output_gradient;
}

Functions functions(LayerKind kind) {
  switch (kind) {
    case LayerKind::convolution:
      return {convolution, convolution_backward};
    case LayerKind::dense:
      return {dense, dense_backward};
    case LayerKind::embedding:
      return {embedding, embedding_backward};
    case LayerKind::batch_norm:
    case LayerKind::layer_norm:
      return {normalization, normalization_backward};
    case LayerKind::relu:
    case LayerKind::leaky_relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::elu:
    case LayerKind::gelu:
      return {activation, activation_backward};
    case LayerKind::max_pool:
    case LayerKind::average_pool:
      return {pool, pool_backward};
    case LayerKind::add:
      return {add, add_backward};
    case LayerKind::up_sample:
      return {up_sample, up_sample_backward};
    case LayerKind::reshape:
      return {reshape, reshape_backward};
    case LayerKind::dropout:
      return {dropout, dropout_backward};
    case LayerKind::lstm:
      return {lstm, lstm_backward};
    case LayerKind::gru:
      return {gru, gru_backward};
    case LayerKind::attention:
      return {attention, attention_backward};
    case LayerKind::softmax_cross_entropy:
    case LayerKind::sigmoid_cross_entropy:
    case LayerKind::mean_squared_error:
      return {loss, loss_backward};
    case LayerKind::locally_connected:
      break;
  }
  throw std::invalid_argument("reference: no loops for this kind of layer");
}

}  // namespace

Array forward(const Case& c) {
  return functions(c.layer.kind).forward(c);
}

Gradients backward(const Case& c, const Array& output_gradient) {
  Gradients gradients = zero_gradients(c);
  functions(c.layer.kind).backward(c, output_gradient, gradients);
  return gradients;
}

Gradients zero_gradients(const Case& c) {
  Gradients gradients;
  for (const Array& input : c.inputs) gradients.inputs.emplace_back(input.size());
  for (const Array& parameter : c.parameters) gradients.parameters.emplace_back(parameter.size());
  return gradients;
}

}  // namespace stepcast::reference
