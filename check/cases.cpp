#include "check/cases.hpp"

#include <functional>
#include <numeric>

#include "core/random.hpp"

namespace stepcast::test {
namespace {

Window window(std::vector<std::int64_t> kernel, std::vector<std::int64_t> stride,
              std::vector<std::int64_t> before, std::vector<std::int64_t> after) {
  return {std::move(kernel), std::move(stride), std::move(before), std::move(after)};
}

Array class_indices(std::size_t rows, std::int64_t classes) {
  Array indices;
  for (std::size_t i = 0; i < rows; ++i) {
    indices.push_back((3 * i + 1) % classes);
  }
  return indices;
}

Case case_of(Layer layer, std::int64_t batch) {
  Case c;
  c.batch = batch;
  const std::size_t inputs = layer.kind == LayerKind::add ? 3 : 1;
  for (std::size_t i = 0; i < inputs; ++i) {
    c.inputs.push_back(uniform_array(batch * elements(layer.input), 10 + i));
  }
  for (std::size_t k = 0; k < layer.parameters.size(); ++k) {
    c.parameters.push_back(uniform_array(elements(layer.parameters[k].shape), 20 + k));
  }
  if (layer.kind == LayerKind::softmax_cross_entropy) {
    c.targets = class_indices(c.inputs[0].size() / layer.input.back(), layer.input.back());
  } else if (layer.output == Shape{1}) {
    c.targets = uniform_array(c.inputs[0].size(), 30);
  }
  if (layer.kind == LayerKind::embedding) c.inputs[0] = class_indices(c.inputs[0].size(), 7);
  c.layer = std::move(layer);
  return c;
}

void add_windows(std::vector<NamedCase>& cases) {
  const Window odd = window({3, 3}, {1, 1}, {1, 1}, {1, 1});
  const Window skewed = window({5, 2}, {2, 3}, {2, 0}, {1, 1});
  const Window cube = window({3, 2, 4}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2});
  cases.push_back({"convolution 2-D", case_of(convolution_layer({3, 7, 9}, 5, odd, true), 2)});
  cases.push_back(
      {"convolution strided, asymmetric", case_of(convolution_layer({16, 9, 11}, 32, skewed, false), 2)});
  cases.push_back({"convolution of whole blocks", case_of(convolution_layer({16, 8, 8}, 16, odd, true), 1)});
  cases.push_back(
      {"convolution 1x1 strided",
       case_of(convolution_layer({17, 7, 7}, 33, window({1, 1}, {2, 2}, {0, 0}, {0, 0}), false), 2)});
  cases.push_back({"convolution 3-D", case_of(convolution_layer({2, 5, 6, 7}, 6, cube, true), 2)});
  cases.push_back(
      {"convolution 1-D", case_of(convolution_layer({4, 13}, 5, window({3}, {2}, {1}, {0}), true), 2)});
  cases.push_back({"convolution in groups", case_of(convolution_layer({6, 7, 9}, 10, skewed, true, 2), 2)});
  cases.push_back({"convolution depthwise", case_of(convolution_layer({5, 7, 9}, 5, odd, false, 5), 2)});
  cases.push_back({"convolution 1-D in groups",
                   case_of(convolution_layer({32, 13}, 32, window({3}, {2}, {1}, {0}), true, 4), 2)});
  cases.push_back(
      {"convolution 3-D in groups", case_of(convolution_layer({4, 5, 6, 7}, 8, cube, true, 4), 2)});
  for (const LayerKind kind : {LayerKind::max_pool, LayerKind::average_pool}) {
    const std::string name = kind == LayerKind::max_pool ? "max_pool" : "average_pool";
    cases.push_back(
        {name + " padded", case_of(pool_layer(kind, {3, 7, 8}, window({3, 3}, {2, 2}, {1, 1}, {1, 0})), 2)});
    cases.push_back(
        {name + " 3-D",
         case_of(pool_layer(kind, {2, 5, 5, 5}, window({2, 2, 2}, {2, 2, 2}, {0, 0, 0}, {0, 0, 0})), 2)});
  }
}

void add_rows(std::vector<NamedCase>& cases) {
  cases.push_back({"dense", case_of(dense_layer({19}, 7, true), 5)});
  cases.push_back({"dense over time, no bias", case_of(dense_layer({6, 19}, 33, false), 3)});
  cases.push_back({"embedding", case_of(embedding_layer(), 2)});
  cases.push_back({"position_embedding", case_of(position_embedding_layer({5, 9}, 6), 3)});
  cases.push_back({"position_embedding of packs", case_of(position_embedding_layer({6, 16}, 6), 2)});
  for (const LayerKind kind : {LayerKind::class_token, LayerKind::first_token}) {
    cases.push_back({to_string(kind), case_of(token_layer(kind, {5, 9}), 3)});
    cases.push_back({std::string(to_string(kind)) + " of packs", case_of(token_layer(kind, {4, 32}), 2)});
  }
  cases.push_back({"batch_norm 2-D", case_of(norm_layer(LayerKind::batch_norm, {5, 3, 4}), 3)});
  cases.push_back({"batch_norm of features", case_of(norm_layer(LayerKind::batch_norm, {9}), 6)});
  cases.push_back({"batch_norm 3-D", case_of(norm_layer(LayerKind::batch_norm, {6, 3, 2, 4}), 2)});
  cases.push_back({"layer_norm", case_of(norm_layer(LayerKind::layer_norm, {4, 11}), 2)});
  // Rows that a warp and a block of a GPU hold in packs of 16 bytes.
  cases.push_back({"layer_norm of packs", case_of(norm_layer(LayerKind::layer_norm, {4, 48}), 2)});
  cases.push_back({"layer_norm of many packs", case_of(norm_layer(LayerKind::layer_norm, {3, 2056}), 2)});
  cases.push_back({"attention", case_of(attention_layer({5, 24}, 2, false), 2)});
  cases.push_back({"attention causal", case_of(attention_layer({7, 18}, 3, true), 2)});
  // Heads of whole packs, which fused kernels want.
  cases.push_back({"attention of packs", case_of(attention_layer({5, 48}, 2, false), 2)});
  cases.push_back({"attention of packs, causal", case_of(attention_layer({9, 72}, 3, true), 2)});
}

void add_elements(std::vector<NamedCase>& cases) {
  for (const LayerKind kind : {LayerKind::relu, LayerKind::leaky_relu, LayerKind::sigmoid, LayerKind::tanh,
                               LayerKind::elu, LayerKind::gelu}) {
    cases.push_back(
        {std::string("activation ") + to_string(kind), case_of(plain_layer(kind, {3, 5, 7}, 0.3), 2)});
  }
  cases.push_back({"add", case_of(plain_layer(LayerKind::add, {3, 5}), 2)});
  cases.push_back({"up_sample", case_of(up_sample_layer({3, 4, 5}, {2, 3}), 2)});
  cases.push_back({"up_sample 3-D", case_of(up_sample_layer({2, 3, 2, 3}, {2, 1, 3}), 2)});
  cases.push_back({"reshape", case_of(reshape_layer({3, 4, 5}, {12, 5}), 2)});
  cases.push_back({"dropout", case_of(plain_layer(LayerKind::dropout, {50}, 0.4), 3)});
  cases.push_back({"softmax_cross_entropy", case_of(loss_layer(LayerKind::softmax_cross_entropy, {13}), 5)});
  cases.push_back(
      {"softmax_cross_entropy over time", case_of(loss_layer(LayerKind::softmax_cross_entropy, {4, 9}), 3)});
  cases.push_back({"sigmoid_cross_entropy", case_of(loss_layer(LayerKind::sigmoid_cross_entropy, {6}), 4)});
  cases.push_back({"mean_squared_error", case_of(loss_layer(LayerKind::mean_squared_error, {2, 5}), 3)});
}

void add_recurrent(std::vector<NamedCase>& cases) {
  for (const LayerKind kind : {LayerKind::lstm, LayerKind::gru}) {
    const std::string name = kind == LayerKind::lstm ? "lstm" : "gru";
    cases.push_back({name, case_of(recurrent_layer(kind, {6, 5}, 7, false, true), 3)});
    cases.push_back({name + " both directions", case_of(recurrent_layer(kind, {5, 4}, 6, true, true), 2)});
    cases.push_back({name + " last state", case_of(recurrent_layer(kind, {4, 3}, 5, false, false), 2)});
    cases.push_back({name + " last states of both directions",
                     case_of(recurrent_layer(kind, {4, 3}, 5, true, false), 2)});
  }
}

}  // namespace

Array uniform_array(std::size_t count, std::uint32_t stream) {
  Array values;
  for (std::size_t i = 0; i < count; ++i) {
    const RandomKey key{.seed = 7,
                        .purpose = Purpose::data,
                        .worker = stream,
                        .step = 0,
                        .item = static_cast<std::uint32_t>(i)};
    values.push_back(2 * uniform(key) - 1);
  }
  return values;
}

std::vector<float> as_floats(const Array& values) {
  std::vector<float> floats;
  for (const double value : values) floats.push_back(value);
  return floats;
}

Array as_doubles(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

std::size_t elements(const Shape& shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies<>());
}

std::vector<NamedCase> all_cases() {
  std::vector<NamedCase> cases;
  add_windows(cases);
  add_rows(cases);
  add_elements(cases);
  add_recurrent(cases);
  return cases;
}

std::vector<NamedCase> processor_cases() {
  std::vector<NamedCase> cases = all_cases();
  const Window odd = window({3, 3}, {1, 1}, {1, 1}, {1, 1});
  const Window skewed = window({5, 2}, {2, 3}, {2, 0}, {1, 1});
  const Window cube = window({3, 2, 4}, {1, 2, 1}, {1, 0, 1}, {1, 1, 2});
  cases.push_back({"locally_connected", case_of(locally_connected_layer({3, 7, 9}, 5, odd, true), 2)});
  cases.push_back({"locally_connected strided, asymmetric",
                   case_of(locally_connected_layer({4, 9, 11}, 6, skewed, false), 3)});
  cases.push_back(
      {"locally_connected 3-D", case_of(locally_connected_layer({2, 5, 6, 7}, 3, cube, true), 2)});
  cases.push_back({"locally_connected 1-D",
                   case_of(locally_connected_layer({4, 13}, 5, window({3}, {2}, {1}, {0}), true), 2)});
  cases.push_back({"experts", case_of(experts_layer({5, 7}, 4, 2, 6), 3)});
  cases.push_back({"experts, one a token", case_of(experts_layer({6, 16}, 3, 1, 8), 2)});
  cases.push_back({"experts that no token visits", case_of(experts_layer({2, 5}, 9, 3, 4), 1)});
  return cases;
}

namespace {

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

Layer convolution_layer(Shape input, std::int64_t filters, Window w, bool bias, std::int64_t groups) {
  const Shape output = window_output(filters, input, w);
  Layer layer = layer_of(LayerKind::convolution, std::move(input), output);
  layer.groups = groups;
  Shape weight{filters, layer.input.front() / groups};
  weight.insert(weight.end(), w.kernel.begin(), w.kernel.end());
  layer.window = std::move(w);
  layer.parameters = {{"weight", weight}};
  if (bias) layer.parameters.push_back({"bias", {filters}});
  return layer;
}

Layer locally_connected_layer(Shape input, std::int64_t filters, Window w, bool bias) {
  Layer layer = layer_of(LayerKind::locally_connected, std::move(input), {});
  layer.window = std::move(w);
  complete_locally_connected(filters, bias, layer);
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

namespace {

/// Moves numbers away from zero: [-1, 0) to [-distance - 0.5, -distance), and [0, 1) likewise.
Array pushed_apart(Array values, double distance) {
  for (double& value : values) value = value / 2 + (value < 0 ? -distance : distance);
  return values;
}

}  // namespace

NormBeforeRelu norm_before_relu(std::int64_t channels) {
  NormBeforeRelu made;
  made.norm.layer = norm_layer(LayerKind::batch_norm, {channels, 4, 5});
  made.norm.batch = 3;
  const std::size_t count = channels, all = 60 * count;  // 3 x 4 x 5
  made.norm.inputs = {pushed_apart(uniform_array(all, 1), 0.5)};
  made.term = pushed_apart(uniform_array(all, 2), 4);
  for (std::uint32_t k = 0; k < 4; ++k) made.norm.parameters.push_back(uniform_array(count, 20 + k));
  for (double& scale : made.norm.parameters[0]) scale = 1 + scale / 2;
  for (double& shift : made.norm.parameters[1]) shift /= 20;
  return made;
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

Layer experts_layer(Shape input, std::int64_t experts, std::int64_t top, std::int64_t hidden) {
  const Shape output = input;
  Layer layer = layer_of(LayerKind::experts, std::move(input), output);
  layer.experts = experts;
  layer.top = top;
  layer.hidden = hidden;
  complete_experts(layer);
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

Layer position_embedding_layer(Shape input, std::int64_t rows) {
  const Shape output = input;
  Layer layer = layer_of(LayerKind::position_embedding, std::move(input), output);
  complete_position_embedding(rows, layer);
  return layer;
}

Layer token_layer(LayerKind kind, Shape input) {
  const Shape output{input.back()};
  Layer layer = layer_of(kind, std::move(input), output);
  if (kind == LayerKind::class_token) complete_class_token(0, layer);
  return layer;
}

Layer up_sample_layer(const Shape& input, std::vector<std::int64_t> factors) {
  Layer layer = layer_of(LayerKind::up_sample, input, input);
  for (std::size_t i = 0; i < factors.size(); ++i) layer.output[i + 1] *= factors[i];
  layer.window.kernel = std::move(factors);
  return layer;
}

Layer reshape_layer(Shape input, Shape output) {
  return layer_of(LayerKind::reshape, std::move(input), std::move(output));
}

}  // namespace stepcast::test
