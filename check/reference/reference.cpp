#include "check/reference/reference.hpp"

#include <stdexcept>
#include <string>

#include "kernels/network/layer_table.hpp"

namespace stepcast::reference {
namespace {

struct Functions {
  Array (*forward)(const Case&) = nullptr;
  void (*backward)(const Case&, const Array&, Gradients&) = nullptr;
};

Array reshape(const Case& c) {
  return c.inputs.at(0);
}

void reshape_backward(const Case&, const Array& output_gradient, Gradients& gradients) {
  gradients.inputs.at(0) = output_gradient;
}

constexpr LayerTable<Functions> kFunctions{
    .convolution = {convolution, convolution_backward},
    .locally_connected = {locally_connected, locally_connected_backward},
    .dense = {dense, dense_backward},
    .embedding = {embedding, embedding_backward},
    .position_embedding = {position_embedding, position_embedding_backward},
    .class_token = {class_token, class_token_backward},
    .first_token = {first_token, first_token_backward},
    .batch_norm = {normalization, normalization_backward},
    .layer_norm = {normalization, normalization_backward},
    .activation = {activation, activation_backward},
    .pool = {pool, pool_backward},
    .add = {add, add_backward},
    .up_sample = {up_sample, up_sample_backward},
    .reshape = {reshape, reshape_backward},
    .dropout = {dropout, dropout_backward},
    .recurrent = {recurrent, recurrent_backward},
    .attention = {attention, attention_backward},
    .softmax_loss = {loss, loss_backward},
    .element_loss = {loss, loss_backward},
    .experts = {experts, experts_backward}};

Functions functions_of(LayerKind kind) {
  const Functions found = kFunctions.of(kind);
  if (found.forward == nullptr) {
    throw std::invalid_argument(std::string("reference: no implementation of ") + to_string(kind));
  }
  return found;
}

/// Zeros of the shapes of inputs and parameters.
Gradients zero_gradients(const Case& c) {
  Gradients gradients;
  for (const Array& input : c.inputs) gradients.inputs.emplace_back(input.size());
  for (const Array& parameter : c.parameters) gradients.parameters.emplace_back(parameter.size());
  return gradients;
}

}  // namespace

Array forward(const Case& c) {
  return functions_of(c.layer.kind).forward(c);
}

Gradients backward(const Case& c, const Array& output_gradient) {
  Gradients gradients = zero_gradients(c);
  functions_of(c.layer.kind).backward(c, output_gradient, gradients);
  return gradients;
}

}  // namespace stepcast::reference
