#include "models/network/layer.hpp"

#include <fmt/ranges.h>

#include <array>

#include "core/expects.hpp"

namespace stepcast {

namespace {

// In the order of LayerKind.
constexpr std::array kKindWords{"convolution",
                                "locally_connected",
                                "dense",
                                "embedding",
                                "batch_norm",
                                "layer_norm",
                                "rms_norm",
                                "scale",
                                "relu",
                                "leaky_relu",
                                "sigmoid",
                                "tanh",
                                "elu",
                                "gelu",
                                "silu",
                                "swiglu",
                                "max_pool",
                                "average_pool",
                                "slice",
                                "add",
                                "concatenate",
                                "up_sample",
                                "reshape",
                                "dropout",
                                "lstm",
                                "gru",
                                "rotary_embedding",
                                "attention",
                                "state_space",
                                "experts",
                                "position_embedding",
                                "class_token",
                                "first_token",
                                "softmax_cross_entropy",
                                "sigmoid_cross_entropy",
                                "mean_squared_error",
                                "measured"};

static_assert(kKindWords.size() == static_cast<std::size_t>(LayerKind::measured) + 1);

}  // namespace

const char* to_string(LayerKind kind) {
  return kKindWords.at(ordinal(kind));
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

bool is_depthwise(const Layer& layer) {
  return layer.groups > 1 && layer.groups == layer.input.front();
}

namespace {

Shape joined(Shape a, const Shape& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

Shape with_last(Shape shape, std::int64_t size) {
  expects(!shape.empty(), "a shape with dimensions");
  shape.back() = size;
  return shape;
}

}  // namespace

void complete_dense(std::int64_t units, bool bias, Layer& layer) {
  layer.output = with_last(layer.input, units);
  layer.parameters = {{"weight", {units, layer.input.back()}}};
  if (bias) layer.parameters.push_back({"bias", {units}});
}

void complete_convolution(std::int64_t filters, bool bias, Layer& layer) {
  layer.output = window_output(filters, layer.input, layer.window);
  layer.parameters = {{"weight", joined({filters, layer.input.front() / layer.groups}, layer.window.kernel)}};
  if (bias) layer.parameters.push_back({"bias", {filters}});
}

void complete_locally_connected(std::int64_t filters, bool bias, Layer& layer) {
  layer.output = window_output(filters, layer.input, layer.window);
  const Shape positions(layer.output.begin() + 1, layer.output.end());
  const Shape filter = joined({filters, layer.input.front()}, layer.window.kernel);
  layer.parameters = {{"weight", joined(positions, filter)}};
  if (bias) layer.parameters.push_back({"bias", joined(positions, {filters})});
}

void complete_batch_norm(Layer& layer) {
  layer.output = layer.input;
  const Shape channels{layer.input.front()};
  layer.parameters = {{"scale", channels},
                      {"shift", channels},
                      {"running_mean", channels, false},
                      {"running_variance", channels, false}};
}

void complete_layer_norm(Layer& layer, bool affine) {
  layer.output = layer.input;
  if (affine) layer.parameters = {{"scale", {layer.input.back()}}, {"shift", {layer.input.back()}}};
}

void complete_rms_norm(Layer& layer) {
  layer.output = layer.input;
  layer.parameters = {{"scale", {layer.input.back()}}};
}

void complete_scale(Layer& layer) {
  layer.output = layer.input;
  layer.parameters = {{"scale", {layer.input.back()}}};
}

void complete_recurrent(bool whole_sequence, Layer& layer) {
  const std::int64_t directions = layer.bidirectional ? 2 : 1;
  const std::int64_t gates = layer.kind == LayerKind::lstm ? 4 : 3;
  const std::int64_t features = directions * layer.hidden;
  layer.output = whole_sequence ? Shape{layer.input.front(), features} : Shape{features};
  layer.parameters = {{"weight_input", {directions, gates, layer.hidden, layer.input.back()}},
                      {"weight_hidden", {directions, gates, layer.hidden, layer.hidden}},
                      {"bias", {directions, gates, layer.hidden}}};
}

std::int64_t heads_of_input(const Layer& layer) {
  const std::int64_t kv_heads = layer.kv_heads > 0 ? layer.kv_heads : layer.heads;
  return layer.heads + (layer.inputs.size() > 1 ? 0 : 2 * kv_heads);
}

std::int64_t attended_tokens(const Layer& layer) {
  return layer.keys > 0 ? layer.keys : layer.input.front();
}

std::int64_t query_features(const Layer& attention) {
  if (attention.value_width == 0) return attention.output.back();
  if (attention.inputs.size() > 1) return attention.input.back();
  const std::int64_t kv_heads = attention.kv_heads > 0 ? attention.kv_heads : attention.heads;
  const std::int64_t keys_too = attention.input.back() - kv_heads * attention.value_width;
  return keys_too / (attention.heads + kv_heads) * attention.heads;
}

void complete_attention(Layer& layer) {
  const std::int64_t width =
      layer.value_width > 0 ? layer.value_width : layer.input.back() / heads_of_input(layer);
  layer.output = with_last(layer.input, width * layer.heads);
  if (layer.position_bias > 0) layer.parameters = {{"position_bias", {layer.position_bias, layer.heads}}};
}

void complete_latent_rotary(std::int64_t shared_key, Layer& layer) {
  layer.shared_key = shared_key;
  layer.output = with_last(layer.input, 2 * layer.input.back() + layer.heads * layer.value_width);
}

void complete_state_space(bool bias, Layer& layer) {
  const std::int64_t shared = 2 * layer.groups * layer.hidden;
  const std::int64_t inner = (layer.input.back() - shared - layer.heads) / 2;
  layer.output = with_last(layer.input, inner);
  layer.parameters = {{"convolution", {inner + shared, layer.window.kernel.front()}},
                      {"decay", {layer.heads}},
                      {"skip", {layer.heads}},
                      {"step_bias", {layer.heads}},
                      {"scale", {inner}}};
  if (bias) layer.parameters.push_back({"bias", {inner + shared}});
}

void complete_experts(Layer& layer) {
  const std::int64_t features = layer.input.back();
  layer.output = layer.input;
  layer.coefficient = 1;
  layer.parameters = {{"weight_router", {layer.experts, features}},
                      {"weight_hidden", {layer.experts, 2 * layer.hidden, features}},
                      {"weight_output", {layer.experts, features, layer.hidden}}};
}

double expert_rows(const Layer& layer) {
  return layer.coefficient * layer.input.front() * layer.top;
}

void complete_position_embedding(std::int64_t rows, Layer& layer, bool trained) {
  layer.output = layer.input;
  layer.parameters = {{"weight", {rows, layer.input.back()}, trained}};
}

void complete_class_token(std::int64_t unused, Layer& layer) {
  layer.output = {layer.input.front() + 1, layer.input.back()};
  layer.parameters = {{"weight", {layer.input.back()}}};
  if (unused > 0) layer.parameters.push_back({"unused", {unused, layer.input.back()}, false});
}

void complete_concatenate(std::int64_t first_dimensions, Layer& layer) {
  expects(!layer.input.empty(), "an input with dimensions");
  layer.output = layer.input;
  layer.output.front() = first_dimensions;
}

Shape window_output(std::int64_t channels, const Shape& input, const Window& window) {
  expects(input.size() > window.kernel.size(), "channels and a dimension for each of the window's");
  expects(window.pad_before.size() == window.kernel.size() && window.stride.size() == window.kernel.size(),
          "a complete window");
  Shape output{channels};
  for (std::size_t i = 0; i < window.kernel.size(); ++i) {
    const std::int64_t padded = input[i + 1] + window.pad_before[i] + window.pad_after[i];
    output.push_back((padded - window.kernel[i]) / window.stride[i] + 1);
  }
  return output;
}

const Keys& pad_keys() {
  static const Keys keys{{"before", Allowed({KeyType::integer, KeyType::integers}, {0, 1e6}), "required",
                          "padding before the first position"},
                         {"after", Allowed({KeyType::integer, KeyType::integers}, {0, 1e6}), "required",
                          "padding after the last position"}};
  return keys;
}

const Keys& model_keys() {
  static const Keys keys{
      {"name", KeyType::text, "required", "name of the network; traces refer to it"},
      {"source", KeyType::text, "required", "origin of the layers"},
      {"sample", KeyType::text, "sample", "what one sample is (\"image\", \"frame\"); only printed"},
      {"input", Allowed(KeyType::integers, {1, 1e9}), "required without `transformer_stack`",
       "shape of one sample, 1 to 4 sizes"},
      {"layers", KeyType::mappings, "required without `transformer_stack`",
       "layers in the order in which they run, and blocks that are repeated", layer_item_keys},
      {"transformer_stack", KeyType::mapping, "none", "in place of `input` and `layers`: a GPT-style network",
       transformer_stack_keys}};
  return keys;
}

const Keys& layer_item_keys() {
  static const Keys keys = [] {
    Keys all = joined_keys(
        {network_layer_keys(), only_with("no kind", keys_named(repeat_keys(), {"repeat", "layers"}))});
    for (Key& key : all) {
      if (key.name == "kind" || key.name == "repeat" || key.name == "layers") key.default_value = "none";
    }
    return all;
  }();
  return keys;
}

}  // namespace stepcast
