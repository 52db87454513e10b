#include <fmt/format.h>

#include <algorithm>

#include "models/network/layer.hpp"
#include "models/network/layer_fields.hpp"
#include "models/network/layer_list.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kLargestSize = 1'000'000;  // prevents overflow of the products of sizes

void pad_same(const Shape& input, Window& window) {
  for (std::size_t i = 0; i < window.kernel.size(); ++i) {
    const std::int64_t positions = (input[i + 1] + window.stride[i] - 1) / window.stride[i];
    const std::int64_t covered = (positions - 1) * window.stride[i] + window.kernel[i];
    const std::int64_t total = std::max<std::int64_t>(0, covered - input[i + 1]);
    window.pad_before[i] = total / 2;
    window.pad_after[i] = total - total / 2;
  }
}

void read_pad(const YamlValue& pad, const Shape& input, Window& window) {
  const std::size_t dimensions = window.kernel.size();
  if (pad.is(YamlNode::Kind::scalar) && pad.node().text == "same") {
    pad_same(input, window);
  } else if (pad.is(YamlNode::Kind::mapping)) {
    const YamlMap sides = read_map(pad, pad_keys());
    window.pad_before = per_dimension(sides.at("before"), dimensions, 0);
    window.pad_after = per_dimension(sides.at("after"), dimensions, 0);
  } else {
    window.pad_before = window.pad_after = per_dimension(pad, dimensions, 0);
  }
}

void check_fits(const YamlValue& kernel, const Shape& input, const Window& window) {
  for (std::size_t i = 0; i < window.kernel.size(); ++i) {
    const std::int64_t padded = input[i + 1] + window.pad_before[i] + window.pad_after[i];
    if (window.kernel[i] > padded) {
      kernel.refuse(
          fmt::format("a kernel of {} does not fit into a padded input of {}", window.kernel[i], padded));
    }
  }
}

}  // namespace

std::vector<std::int64_t> per_dimension(const YamlValue& value, std::size_t dimensions, std::int64_t low) {
  if (!value.is(YamlNode::Kind::sequence)) {
    return std::vector<std::int64_t>(dimensions, value.integer(low, kLargestSize));
  }
  std::vector<std::int64_t> sizes;
  for (const YamlValue& item : value.list()) sizes.push_back(item.integer(low, kLargestSize));
  if (sizes.size() != dimensions) {
    value.refuse(fmt::format("expected {} integers, one for each spatial dimension, got {}", dimensions,
                             sizes.size()));
  }
  return sizes;
}

Window read_window(const YamlMap& yaml, const Shape& input, DefaultStride default_stride) {
  const std::size_t dimensions = input.size() - 1;
  Window window;
  const YamlValue kernel = yaml.at("kernel", "an integer >= 1");
  window.kernel = per_dimension(kernel, dimensions, 1);
  window.stride.assign(dimensions, 1);
  if (default_stride == DefaultStride::kernel) window.stride = window.kernel;
  if (const auto stride = yaml.maybe("stride")) window.stride = per_dimension(*stride, dimensions, 1);
  window.pad_before.assign(dimensions, 0);
  window.pad_after.assign(dimensions, 0);
  if (const auto pad = yaml.maybe("pad")) read_pad(*pad, input, window);
  check_fits(kernel, input, window);
  return window;
}

namespace {

constexpr std::int64_t kMost = 1'000'000'000;  // greatest number of units, filters, cells

/// The mapping of a layer, and its keys.
struct LayerMapping {
  LayerKeys keys;
  YamlMap map;
};

LayerMapping keys_of(const YamlValue& value, const Layer& layer) {
  LayerKeys keys;
  YamlMap map = read_layer_keys(value, layer.kind, keys);
  return {keys, std::move(map)};
}

void require_rank(const YamlValue& value, const Layer& layer, std::size_t low, std::size_t high) {
  if (layer.input.size() >= low && layer.input.size() <= high) return;
  value.refuse(fmt::format("a {} layer takes an input of {} to {} dimensions, got {}", to_string(layer.kind),
                           low, high, to_string(layer.input)));
}

void read_convolution(const YamlValue& value, Layer& layer) {
  const auto [keys, map] = keys_of(value, layer);
  require_rank(value, layer, 2, 4);
  layer.window = read_window(map, layer.input, DefaultStride::one);
  if (map.has("groups")) {
    layer.groups = keys.groups;
    if (layer.input.front() % layer.groups != 0 || keys.filters % layer.groups != 0)
      map.at("groups").refuse(fmt::format("expected a number that divides {} channels and {} filters, got {}",
                                          layer.input.front(), keys.filters, layer.groups));
  }
  if (layer.kind == LayerKind::convolution) complete_convolution(keys.filters, keys.bias, layer);
  if (layer.kind == LayerKind::locally_connected) complete_locally_connected(keys.filters, keys.bias, layer);
}

void read_pool(const YamlValue& value, Layer& layer) {
  const auto [keys, map] = keys_of(value, layer);
  require_rank(value, layer, 2, 4);
  layer.window = read_window(map, layer.input, DefaultStride::kernel);
  layer.output = window_output(layer.input.front(), layer.input, layer.window);
}

void read_dense(const YamlValue& value, Layer& layer) {
  const LayerKeys keys = keys_of(value, layer).keys;
  require_rank(value, layer, 1, 2);
  complete_dense(keys.units, keys.bias, layer);
}

void read_embedding(const YamlValue& value, Layer& layer) {
  const LayerKeys keys = keys_of(value, layer).keys;
  require_rank(value, layer, 1, 1);
  layer.output = {layer.input.front(), keys.columns};
  layer.parameters = {{"weight", {keys.rows, keys.columns}}};
}

void read_recurrent(const YamlValue& value, Layer& layer) {
  const LayerKeys keys = keys_of(value, layer).keys;
  require_rank(value, layer, 2, 2);
  layer.hidden = keys.hidden;
  layer.bidirectional = keys.bidirectional;
  complete_recurrent(!keys.last_step_only, layer);
}

/// The features of the input, less values beside them, must be those of heads of queries and keys.
void check_value_width(const YamlValue& width, const Layer& layer) {
  const bool alone = layer.inputs.size() > 1;
  const std::int64_t kv_heads = layer.kv_heads > 0 ? layer.kv_heads : layer.heads;
  const std::int64_t values = alone ? 0 : kv_heads * layer.value_width;
  const std::int64_t heads = layer.heads + (alone ? 0 : kv_heads);
  const std::int64_t rest = layer.input.back() - values;
  if (rest > 0 && rest % heads == 0) return;
  width.refuse(fmt::format("expected {} features less {} of values to be those of {} heads{}",
                           layer.input.back(), values, heads, alone ? "" : " of queries and keys"));
}

/// Takes `heads` and reads `kv_heads` and `value_width` of layers whose input is queries, keys and values
/// side by side.
void read_heads(const YamlMap& yaml, const LayerKeys& keys, Layer& layer) {
  require_rank(yaml.value(), layer, 2, 2);
  layer.heads = keys.heads;
  if (const auto few = yaml.maybe("kv_heads")) {
    const std::int64_t kv_heads = few->integer(1, layer.heads);
    if (layer.heads % kv_heads != 0)
      few->refuse(fmt::format("expected a divisor of {} heads, got {}", layer.heads, kv_heads));
    if (kv_heads < layer.heads) layer.kv_heads = kv_heads;
  }
  if (const auto width = yaml.maybe("value_width")) {
    layer.value_width = width->integer(1, layer.input.back());
    return check_value_width(*width, layer);
  }
  if (layer.input.back() % heads_of_input(layer) == 0) return;
  if (layer.inputs.size() > 1)
    yaml.value().refuse(fmt::format("{} takes queries whose features are a multiple of {} heads, got {}",
                                    to_string(layer.kind), layer.heads, layer.input.back()));
  if (layer.kv_heads > 0) {
    yaml.value().refuse(fmt::format(
        "{} takes the features of {} heads, {} of queries and {} of keys and of values, got {}",
        to_string(layer.kind), heads_of_input(layer), layer.heads, layer.kv_heads, layer.input.back()));
  }
  yaml.value().refuse(fmt::format("{} takes 3 x width features, width a multiple of {} heads, got {}",
                                  to_string(layer.kind), layer.heads, layer.input.back()));
}

/// Windows of equally many tokens, one after another.
void read_attention_window(const YamlValue& value, Layer& layer) {
  const std::int64_t tokens = layer.input.front(), window = value.integer(1, tokens);
  if (tokens % window != 0 || layer.inputs.size() > 1)
    value.refuse(fmt::format("expected a divisor of the {} tokens of one input, got {}", tokens, window));
  if (window < tokens) layer.keys = window;
}

void read_attention(const YamlValue& value, Layer& layer) {
  const auto [keys, map] = keys_of(value, layer);
  read_heads(map, keys, layer);
  layer.causal = keys.causal;
  layer.coefficient = keys.dropout;
  if (keys.position_bias) layer.position_bias = *keys.position_bias;
  if (const auto window = map.maybe("window")) read_attention_window(*window, layer);
  complete_attention(layer);
}

void read_state_space(const YamlValue& value, Layer& layer) {
  const auto [keys, map] = keys_of(value, layer);
  require_rank(value, layer, 2, 2);
  layer.heads = map.at("heads").integer(1, kLargestSize);
  layer.hidden = keys.state;
  const auto groups = map.maybe("state_groups");
  layer.groups = groups ? groups->integer(1, layer.heads) : 1;
  layer.keys = std::min(keys.chunk, layer.input.front());
  layer.window.kernel = {keys.taps};
  const std::int64_t twice = layer.input.back() - 2 * layer.groups * layer.hidden - layer.heads;
  if (twice <= 0 || twice % (2 * layer.heads) != 0 || layer.heads % layer.groups != 0)
    value.refuse(
        fmt::format("state_space takes 2 x inner + 2 x {} groups x {} states + {} heads features, inner a "
                    "multiple of the heads and these of the groups, got {}",
                    layer.groups, layer.hidden, layer.heads, layer.input.back()));
  complete_state_space(keys.bias, layer);
}

void read_slice(const YamlValue& value, Layer& layer) {
  const auto [keys, map] = keys_of(value, layer);
  const std::int64_t rows = layer.input.front();
  if (keys.first >= rows)
    map.at("first").refuse(fmt::format("expected a row of {}, got {}", rows, keys.first));
  layer.output = layer.input;
  layer.output.front() = map.at("count", "an integer >= 1").integer(1, rows - keys.first);
}

void read_rotary_embedding(const YamlValue& value, Layer& layer) {
  const auto [keys, map] = keys_of(value, layer);
  read_heads(map, keys, layer);
  layer.output = layer.input;
}

void read_experts(const YamlValue& value, Layer& layer) {
  const auto [keys, map] = keys_of(value, layer);
  require_rank(value, layer, 2, 2);
  layer.experts = keys.experts;
  layer.top = map.at("top", "an integer >= 1").integer(1, layer.experts);
  layer.hidden = keys.hidden;
  complete_experts(layer);
}

void read_position_embedding(const YamlValue& value, Layer& layer) {
  const auto [keys, map] = keys_of(value, layer);
  require_rank(value, layer, 2, 2);
  std::int64_t rows = layer.input.front();
  if (const auto more = map.maybe("rows")) rows = more->integer(rows, kMost);
  complete_position_embedding(rows, layer, keys.trained);
}

void read_token(const YamlValue& value, Layer& layer) {
  const LayerKeys keys = keys_of(value, layer).keys;
  require_rank(value, layer, 2, 2);
  if (layer.kind == LayerKind::class_token) return complete_class_token(keys.unused, layer);
  layer.output = {layer.input.back()};
}

void read_swiglu(const YamlValue& value, Layer& layer) {
  keys_of(value, layer);
  require_rank(value, layer, 1, 2);
  if (layer.input.back() % 2 != 0)
    value.refuse(fmt::format("swiglu takes an even number of features, got {}", layer.input.back()));
  layer.output = layer.input;
  layer.output.back() /= 2;
}

void read_up_sample(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys_of(value, layer).map;
  require_rank(value, layer, 2, 4);
  layer.window.kernel = per_dimension(yaml.at("factor", "an integer >= 1"), layer.input.size() - 1, 1);
  layer.output = layer.input;
  for (std::size_t i = 1; i < layer.output.size(); ++i) layer.output[i] *= layer.window.kernel[i - 1];
}

void read_reshape(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys_of(value, layer).map;
  const YamlValue shape = yaml.at("shape", "a list of integers");
  for (const YamlValue& size : shape.list()) layer.output.push_back(size.integer(1, 1'000'000'000));
  double product = 1;  // a double cannot overflow
  for (const std::int64_t size : layer.output) product *= size;
  if (layer.output.empty() || product != elements(layer.input)) {
    shape.refuse(fmt::format("expected a shape of {} elements ({}), got {}", elements(layer.input),
                             to_string(layer.input), to_string(layer.output)));
  }
}

void read_activation(const YamlValue& value, Layer& layer) {
  const LayerKeys keys = keys_of(value, layer).keys;
  layer.output = layer.input;
  if (layer.kind == LayerKind::leaky_relu) layer.coefficient = keys.slope;
  if (layer.kind == LayerKind::elu) layer.coefficient = keys.alpha;
  if (layer.kind == LayerKind::dropout) layer.coefficient = keys.rate;
}

void read_norm(const YamlValue& value, Layer& layer) {
  const LayerKeys keys = keys_of(value, layer).keys;
  if (layer.kind == LayerKind::batch_norm) complete_batch_norm(layer);
  if (layer.kind == LayerKind::layer_norm) complete_layer_norm(layer, keys.affine);
  if (layer.kind == LayerKind::scale) complete_scale(layer);
  if (layer.kind == LayerKind::rms_norm) complete_rms_norm(layer);
}

/// The trained arrays are only counted: each is one dimension.
void read_measured(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys_of(value, layer).map;
  const YamlValue output = yaml.at("output", "the shape of one sample's output, such as [64, 56, 56]");
  for (const YamlValue& size : output.list()) layer.output.push_back(size.integer(1, kMost));
  if (layer.output.empty()) output.expected("a shape of at least one integer");
  const auto counts = yaml.maybe("parameters");
  if (!counts) return;
  for (const YamlValue& count : counts->list())
    layer.parameters.push_back(
        {fmt::format("array{}", layer.parameters.size() + 1), {count.integer(1, 1'000'000'000'000'000)}});
}

void read_loss(const YamlValue& value, Layer& layer) {
  keys_of(value, layer);
  layer.output = {1};
}

}  // namespace

void read_layer(const YamlValue& value, Layer& layer) {
  if (is_loss(layer.kind)) return read_loss(value, layer);
  if (layer.kind == LayerKind::measured) return read_measured(value, layer);
  switch (layer.kind) {
    case LayerKind::convolution:
    case LayerKind::locally_connected:
      return read_convolution(value, layer);
    case LayerKind::dense:
      return read_dense(value, layer);
    case LayerKind::embedding:
      return read_embedding(value, layer);
    case LayerKind::batch_norm:
    case LayerKind::layer_norm:
    case LayerKind::rms_norm:
    case LayerKind::scale:
      return read_norm(value, layer);
    case LayerKind::max_pool:
    case LayerKind::average_pool:
      return read_pool(value, layer);
    case LayerKind::up_sample:
      return read_up_sample(value, layer);
    case LayerKind::reshape:
      return read_reshape(value, layer);
    case LayerKind::lstm:
    case LayerKind::gru:
      return read_recurrent(value, layer);
    case LayerKind::attention:
      return read_attention(value, layer);
    case LayerKind::state_space:
      return read_state_space(value, layer);
    case LayerKind::slice:
      return read_slice(value, layer);
    case LayerKind::rotary_embedding:
      return read_rotary_embedding(value, layer);
    case LayerKind::experts:
      return read_experts(value, layer);
    case LayerKind::position_embedding:
      return read_position_embedding(value, layer);
    case LayerKind::class_token:
    case LayerKind::first_token:
      return read_token(value, layer);
    case LayerKind::swiglu:
      return read_swiglu(value, layer);
    case LayerKind::concatenate:
      keys_of(value, layer);  // read_model sets the output, because it knows all inputs
      return;
    default:
      return read_activation(value, layer);
  }
}

}  // namespace stepcast
