#include "cases.hpp"

namespace stepcast::test {
namespace {

Shape window_output(std::int64_t channels, const Shape& input, const Window& w) {
  Shape output{channels};
  for (std::size_t i = 0; i < w.kernel.size(); ++i) {
    output.push_back((input[i + 1] + w.pad_before[i] + w.pad_after[i] - w.kernel[i]) / w.stride[i] + 1);
  }
  return output;
}

Layer layer_of(LayerKind kind, Shape input, Shape output) {
  Layer layer;
  layer.name = "layer";
  layer.kind = kind;
  layer.inputs = {-1};
  layer.input = std::move(input);
  layer.output = std::move(output);
  return layer;
}

}  // namespace

Layer convolution_layer(Shape input, std::int64_t filters, Window w, bool bias) {
  const Shape output = window_output(filters, input, w);
  Layer layer = layer_of(LayerKind::convolution, std::move(input), output);
  Shape weight{filters, layer.input.front()};
  weight.insert(weight.end(), w.kernel.begin(), w.kernel.end());
  layer.window = std::move(w);
  layer.parameters = {{"weight", weight}};
  if (bias) layer.parameters.push_back({"bias", {filters}});
  return layer;
}

Layer pool_layer(LayerKind kind, Shape input, Window w) {
  const Shape output = window_output(input.front(), input, w);
  Layer layer = layer_of(kind, std::move(input), output);
  layer.window = std::move(w);
  return layer;
}

Layer dense_layer(Shape input, std::int64_t units, bool bias) {
  Shape output = input;
  output.back() = units;
  Layer layer = layer_of(LayerKind::dense, std::move(input), output);
  layer.parameters = {{"weight", {units, layer.input.back()}}};
  if (bias) layer.parameters.push_back({"bias", {units}});
  return layer;
}

Layer norm_layer(LayerKind kind, Shape input) {
  const Shape output = input;
  Layer layer = layer_of(kind, std::move(input), output);
  const Shape features{kind == LayerKind::batch_norm ? output.front() : output.back()};
  layer.parameters = {{"scale", features}, {"shift", features}};
  if (kind == LayerKind::layer_norm) return layer;
  layer.parameters.push_back({"running_mean", features, false});
  layer.parameters.push_back({"running_variance", features, false});
  return layer;
}

Layer plain_layer(LayerKind kind, Shape input, double coefficient) {
  const Shape output = input;
  Layer layer = layer_of(kind, std::move(input), output);
  layer.coefficient = coefficient;
  return layer;
}

Layer recurrent_layer(LayerKind kind, Shape input, std::int64_t hidden, bool bidirectional,
                      bool whole_sequence) {
  const std::int64_t directions = bidirectional ? 2 : 1;
  const std::int64_t gates = kind == LayerKind::lstm ? 4 : 3;
  const Shape output =
      whole_sequence ? Shape{input.front(), directions * hidden} : Shape{directions * hidden};
  Layer layer = layer_of(kind, std::move(input), output);
  layer.hidden = hidden;
  layer.bidirectional = bidirectional;
  layer.parameters = {{"weight_input", {directions, gates, hidden, layer.input.back()}},
                      {"weight_hidden", {directions, gates, hidden, hidden}},
                      {"bias", {directions, gates, hidden}}};
  return layer;
}

Layer attention_layer(Shape input, std::int64_t heads, bool causal) {
  Shape output = input;
  output.back() /= 3;
  Layer layer = layer_of(LayerKind::attention, std::move(input), output);
  layer.heads = heads;
  layer.causal = causal;
  return layer;
}

Layer loss_layer(LayerKind kind, Shape input) {
  return layer_of(kind, std::move(input), {1});
}

Layer embedding_layer() {
  Layer layer = layer_of(LayerKind::embedding, {5}, {5, 6});
  layer.parameters = {{"weight", {7, 6}}};
  return layer;
}

Layer up_sample_layer(Shape input, std::vector<std::int64_t> factors) {
  Layer layer = layer_of(LayerKind::up_sample, input, input);
  for (std::size_t i = 0; i < factors.size(); ++i) layer.output[i + 1] *= factors[i];
  layer.window.kernel = std::move(factors);
  return layer;
}

Layer reshape_layer(Shape input, Shape output) {
  return layer_of(LayerKind::reshape, std::move(input), std::move(output));
}

}  // namespace stepcast::test
