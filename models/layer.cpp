#include "models/layer.hpp"

#include <array>

#include "models/layer_shapes.hpp"

namespace stepcast {
namespace {

// In the order of LayerKind.
constexpr std::array kKindWords{"convolution",
                                "locally_connected",
                                "dense",
                                "embedding",
                                "batch_norm",
                                "layer_norm",
                                "relu",
                                "leaky_relu",
                                "sigmoid",
                                "tanh",
                                "elu",
                                "gelu",
                                "max_pool",
                                "average_pool",
                                "add",
                                "up_sample",
                                "reshape",
                                "dropout",
                                "lstm",
                                "gru",
                                "attention",
                                "softmax_cross_entropy",
                                "sigmoid_cross_entropy",
                                "mean_squared_error"};

static_assert(kKindWords.size() == static_cast<std::size_t>(LayerKind::mean_squared_error) + 1);

}  // namespace

const char* to_string(LayerKind kind) {
  return kKindWords.at(static_cast<std::size_t>(kind));
}

std::vector<std::string> layer_kind_words() {
  return {kKindWords.begin(), kKindWords.end()};
}

std::int64_t ParameterTensor::elements() const {
  return stepcast::elements(shape);
}

std::int64_t elements(const Shape& shape) {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::string to_string(const Shape& shape) {
  std::string text;
  for (const std::int64_t size : shape) text += (text.empty() ? "" : " x ") + std::to_string(size);
  return text.empty() ? "1" : text;
}

bool is_loss(LayerKind kind) {
  return kind == LayerKind::softmax_cross_entropy || kind == LayerKind::sigmoid_cross_entropy ||
         kind == LayerKind::mean_squared_error;
}

}  // namespace stepcast
