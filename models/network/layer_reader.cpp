#include "models/network/layer_reader.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/network/layer.hpp"

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
    const YamlMap sides = pad.map({"before", "after"});
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

YamlMap keys(const YamlValue& value, std::vector<std::string> own) {
  own.insert(own.begin(), {"name", "kind", "inputs"});
  return value.map(std::move(own));
}

bool flag(const YamlMap& yaml, std::string_view key, bool default_value) {
  const auto value = yaml.maybe(key);
  return value ? value->boolean() : default_value;
}

double coefficient(const YamlMap& yaml, std::string_view key, double default_value) {
  const auto value = yaml.maybe(key);
  return value ? value->number(0) : default_value;
}

void require_rank(const YamlValue& value, const Layer& layer, std::size_t low, std::size_t high) {
  if (layer.input.size() >= low && layer.input.size() <= high) return;
  value.refuse(fmt::format("a {} layer takes an input of {} to {} dimensions, got {}", to_string(layer.kind),
                           low, high, to_string(layer.input)));
}

void read_convolution(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys(value, {"filters", "kernel", "stride", "pad", "bias"});
  require_rank(value, layer, 2, 4);
  layer.window = read_window(yaml, layer.input, DefaultStride::one);
  const std::int64_t filters = yaml.at("filters", "an integer >= 1").integer(1, kMost);
  const bool bias = flag(yaml, "bias", true);
  if (layer.kind == LayerKind::convolution) complete_convolution(filters, bias, layer);
  if (layer.kind == LayerKind::locally_connected) complete_locally_connected(filters, bias, layer);
}

void read_pool(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys(value, {"kernel", "stride", "pad"});
  require_rank(value, layer, 2, 4);
  layer.window = read_window(yaml, layer.input, DefaultStride::kernel);
  layer.output = window_output(layer.input.front(), layer.input, layer.window);
}

void read_dense(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys(value, {"units", "bias"});
  require_rank(value, layer, 1, 2);
  complete_dense(yaml.at("units", "an integer >= 1").integer(1, kMost), flag(yaml, "bias", true), layer);
}

void read_embedding(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys(value, {"rows", "columns"});
  require_rank(value, layer, 1, 1);
  const std::int64_t rows = yaml.at("rows", "an integer >= 1").integer(1, kMost);
  const std::int64_t columns = yaml.at("columns", "an integer >= 1").integer(1, kMost);
  layer.output = {layer.input.front(), columns};
  layer.parameters = {{"weight", {rows, columns}}};
}

void read_recurrent(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys(value, {"hidden", "bidirectional", "output"});
  require_rank(value, layer, 2, 2);
  layer.hidden = yaml.at("hidden", "an integer >= 1").integer(1, kMost);
  layer.bidirectional = flag(yaml, "bidirectional", false);
  const auto output = yaml.maybe("output");
  complete_recurrent(!output || output->one_of({"sequence", "last"}) == 0, layer);
}

void read_attention(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys(value, {"heads", "causal"});
  require_rank(value, layer, 2, 2);
  layer.heads = yaml.at("heads", "an integer >= 1").integer(1, kMost);
  layer.causal = flag(yaml, "causal", false);
  if (layer.input.back() % (3 * layer.heads) != 0) {
    value.refuse(fmt::format("attention takes 3 x width features, width a multiple of {} heads, got {}",
                             layer.heads, layer.input.back()));
  }
  complete_attention(layer);
}

void read_up_sample(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys(value, {"factor"});
  require_rank(value, layer, 2, 4);
  layer.window.kernel = per_dimension(yaml.at("factor", "an integer >= 1"), layer.input.size() - 1, 1);
  layer.output = layer.input;
  for (std::size_t i = 1; i < layer.output.size(); ++i) layer.output[i] *= layer.window.kernel[i - 1];
}

void read_reshape(const YamlValue& value, Layer& layer) {
  const YamlMap yaml = keys(value, {"shape"});
  const YamlValue shape = yaml.at("shape", "a list of integers");
  for (const YamlValue& size : shape.list()) layer.output.push_back(size.integer(1, 1'000'000'000));
  double product = 1;  // a double cannot overflow
  for (const std::int64_t size : layer.output) product *= static_cast<double>(size);
  if (layer.output.empty() || product != static_cast<double>(elements(layer.input))) {
    shape.refuse(fmt::format("expected a shape of {} elements ({}), got {}", elements(layer.input),
                             to_string(layer.input), to_string(layer.output)));
  }
}

void read_activation(const YamlValue& value, Layer& layer) {
  layer.output = layer.input;
  if (layer.kind == LayerKind::leaky_relu) {
    layer.coefficient = coefficient(keys(value, {"slope"}), "slope", 0.01);
  } else if (layer.kind == LayerKind::elu) {
    layer.coefficient = coefficient(keys(value, {"alpha"}), "alpha", 1);
  } else if (layer.kind == LayerKind::dropout) {
    layer.coefficient = keys(value, {"rate"}).at("rate", "a number from 0 to 0.999").number(0, 0.999);
  } else {
    keys(value, {});
  }
}

void read_norm(const YamlValue& value, Layer& layer) {
  keys(value, {});
  if (layer.kind == LayerKind::batch_norm) complete_batch_norm(layer);
  if (layer.kind == LayerKind::layer_norm) complete_layer_norm(layer);
}

void read_loss(const YamlValue& value, Layer& layer) {
  keys(value, {});
  layer.output = {1};
}

}  // namespace

void read_layer(const YamlValue& value, Layer& layer) {
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
    case LayerKind::softmax_cross_entropy:
    case LayerKind::sigmoid_cross_entropy:
    case LayerKind::mean_squared_error:
      return read_loss(value, layer);
    default:
      return read_activation(value, layer);
  }
}

}  // namespace stepcast
