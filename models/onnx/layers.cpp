#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "models/onnx/graph.hpp"

namespace stepcast {
namespace {

/// Pads after the input what a pool that rounds up (ceil_mode) reads beyond it.
void pad_to_output(const OnnxWriter& writer, const OnnxNode& node, const Shape& kernel, const Shape& strides,
                   Shape& pads) {
  const Shape &input = shape_of(writer, node, node.input(0)),
              &output = shape_of(writer, node, node.output(0));
  if (input.size() != kernel.size() + 1 || output.size() != input.size())
    refuse_node(writer.graph, node, "its kernel does not fit its input");
  for (std::size_t i = 0; i < kernel.size(); ++i) {
    std::int64_t& after = pads[kernel.size() + i];
    const std::int64_t read = (output[i + 1] - 1) * strides[i] + kernel[i];
    after += std::max<std::int64_t>(0, read - (input[i + 1] + pads[i] + after));
  }
}

std::string window_keys(const OnnxWriter& writer, const OnnxNode& node, const Shape& kernel) {
  const std::size_t count = kernel.size();
  for (const std::int64_t dilation : integers(node, "dilations", count, 1))
    if (dilation != 1) refuse_node(writer.graph, node, "dilations other than 1 are not supported");
  const auto strides = integers(node, "strides", count, 1);
  auto pads = integers(node, "pads", 2 * count, 0);
  if (strides.size() != count || pads.size() != 2 * count)
    refuse_node(writer.graph, node, "strides or pads do not fit the kernel");
  const auto* automatic = attribute(node, "auto_pad");
  const std::string pad = automatic == nullptr ? "NOTSET" : automatic->s();
  if (pad != "NOTSET" && pad != "VALID" && pad != "SAME_UPPER")
    refuse_node(writer.graph, node, "expected auto_pad NOTSET, VALID or SAME_UPPER");
  if (integer(node, "ceil_mode", 0) != 0 && pad == "NOTSET")
    pad_to_output(writer, node, kernel, strides, pads);
  const auto middle = pads.begin() + count;
  return fmt::format("kernel: {}, stride: {}, pad: {}", list(kernel), list(strides),
                     pad == "SAME_UPPER"
                         ? "same"
                         : fmt::format("{{before: {}, after: {}}}", list({pads.begin(), middle}),
                                       list({middle, pads.end()})));
}

std::string bias_key(bool has_bias) {
  return has_bias ? "" : ", bias: false";
}

/// Sizes of an LSTM or GRU.
struct Recurrent {
  std::int64_t gates = 4, directions = 1, hidden = 1, features = 1;
};

Recurrent take_recurrent(OnnxWriter& writer, const OnnxNode& node) {
  const auto* direction = attribute(node, "direction");
  const std::int64_t directions = direction != nullptr && direction->s() == "bidirectional" ? 2 : 1;
  const std::int64_t gates = node.op_type() == "LSTM" ? 4 : 3;
  const Shape input = take_parameter(writer, node, 1, 3), hidden = take_parameter(writer, node, 2, 3);
  const std::int64_t cells = hidden[2];
  const bool fits = cells > 0 && input[0] == directions && hidden[0] == directions &&
                    input[1] / gates == cells && input[1] % gates == 0 && hidden[1] == input[1];
  if (!fits) refuse_node(writer.graph, node, "its weights do not fit each other");
  if (has_input(node, 3)) {
    const Shape bias = take_parameter(writer, node, 3, 2);
    if (bias[0] != directions || bias[1] / 2 != input[1] || bias[1] % 2 != 0)
      refuse_node(writer.graph, node, "its bias does not fit its weights");
    writer.trained_elements -= directions * input[1];  // stepcast's layers have one bias a gate, ONNX has two
  } else {
    writer.trained_elements += directions * input[1];
  }
  return {gates, directions, cells, input[2]};
}

/// Only the initial states may be given, and only if they do not depend on the network's input.
void check_recurrent(const OnnxWriter& writer, const OnnxNode& node) {
  for (int i = 4; i < node.input_size(); ++i) {
    if (!has_input(node, i)) continue;
    if (i == 7) refuse_node(writer.graph, node, "peepholes are not supported");
    if (fixed_value(writer, node, i) == nullptr)
      refuse_node(writer.graph, node, "lengths or initial states depend on the network's input");
  }
  if (attribute(node, "activations") != nullptr)
    refuse_node(writer.graph, node, "only the default activations are supported");
}

double dropout_rate(const OnnxWriter& writer, const OnnxNode& node) {
  if (!has_input(node, 1)) return number(node, "ratio", 0.5);
  const onnx::TensorProto* tensor = constant(writer, node, 1);
  float rate = 0;
  if (tensor == nullptr || tensor->data_type() != onnx::TensorProto::FLOAT ||
      (tensor->float_data_size() != 1 && tensor->raw_data().size() != sizeof rate))
    refuse_node(writer.graph, node, "expected one 32-bit number as ratio");
  if (tensor->float_data_size() == 1) return tensor->float_data(0);
  std::memcpy(&rate, tensor->raw_data().data(), sizeof rate);
  return rate;
}

}  // namespace

void add_convolution(OnnxWriter& writer, const OnnxNode& node) {
  const Shape input = shape_of(writer, node, node.input(0));
  const Shape weight = take_parameter(writer, node, 1, input.size() + 1);
  const std::int64_t groups = integer(node, "group", 1);
  if (groups < 1 || weight[0] < 1 || weight[0] % groups != 0 || weight[1] != input[0] / groups ||
      input[0] % groups != 0)
    refuse_node(writer.graph, node, "its filters do not fit the input and the number of groups");
  const bool bias = has_input(node, 2);
  if (bias) take_bias(writer, node, 2, weight[0]);
  add_layer(writer, node,
            fmt::format("kind: convolution, filters: {}, {}{}{}", weight[0],
                        window_keys(writer, node, {weight.begin() + 2, weight.end()}),
                        groups > 1 ? fmt::format(", groups: {}", groups) : "", bias_key(bias)));
  if (!bias && uses_of(writer, node.output(0)) == 1)
    writer.without_bias[node.output(0)] = writer.layers.size() - 1;
}

void add_gemm(OnnxWriter& writer, const OnnxNode& node) {
  if (integer(node, "transA", 0) != 0) refuse_node(writer.graph, node, "transA is not supported");
  const Shape weight = take_parameter(writer, node, 1, 2);
  const bool bias = has_input(node, 2);
  const bool turned = integer(node, "transB", 0) != 0;
  if (bias) take_bias(writer, node, 2, weight[turned ? 0 : 1]);
  append_dense(writer, node, weight[turned ? 1 : 0], weight[turned ? 0 : 1], bias_key(bias));
}

void add_batch_norm(OnnxWriter& writer, const OnnxNode& node) {
  for (int i = 1; i <= 2; ++i) take_parameter(writer, node, i, 1);
  for (int i = 3; i <= 4; ++i)
    if (constant(writer, node, i) == nullptr)
      refuse_node(writer.graph, node, "expected initializers as mean and variance");
  add_layer(writer, node, "kind: batch_norm");
}

void add_layer_norm(OnnxWriter& writer, const OnnxNode& node) {
  const std::int64_t last = shape_of(writer, node, node.input(0)).size();
  const std::int64_t axis = integer(node, "axis", -1);
  if ((axis != -1 && axis != last) || !has_input(node, 2))
    refuse_node(writer.graph, node, "expected the last axis, a scale and a shift");
  for (int i = 1; i <= 2; ++i) take_parameter(writer, node, i, 1);
  add_layer(writer, node, "kind: layer_norm");
}

void add_pool(OnnxWriter& writer, const OnnxNode& node) {
  const auto kernel = integers(node, "kernel_shape", 0, 0);
  add_layer(writer, node,
            fmt::format("kind: {}, {}", node.op_type() == "MaxPool" ? "max_pool" : "average_pool",
                        window_keys(writer, node, kernel)));
}

void add_global_pool(OnnxWriter& writer, const OnnxNode& node) {
  const Shape& input = shape_of(writer, node, node.input(0));
  add_layer(writer, node,
            fmt::format("kind: average_pool, kernel: {}", list({input.begin() + 1, input.end()})));
}

void add_dropout(OnnxWriter& writer, const OnnxNode& node) {
  const double rate = dropout_rate(writer, node);
  OnnxValue value = value_of(writer, node, 0);
  if (value.form != OnnxValue::Form::scores)
    return add_layer(writer, node, fmt::format("kind: dropout, rate: {:.6g}", rate));
  value.dropout = rate;  // a part of attention
  writer.values[node.output(0)] = value;
}

void add_recurrent(OnnxWriter& writer, const OnnxNode& node) {
  check_recurrent(writer, node);
  const OnnxValue source = value_of(writer, node, 0);
  // Where time comes before the batch, ONNX's shape does not begin with the batch, but the layer's output
  // does.
  if (source.form != OnnxValue::Form::layer || source.part >= 0)
    refuse_node(writer.graph, node, "expected the whole output of a layer as input 0");
  const Recurrent sizes = take_recurrent(writer, node);
  const auto inferred = writer.graph.shapes.find(node.input(0));
  const bool batch_first = integer(node, "layout", 0) == 1;
  if (batch_first && inferred != writer.graph.shapes.end() && inferred->second.size() == 2) {
    layer_of(writer, node, 0);  // adds a reshape where there is one
  }
  const std::string layer = value_of(writer, node, 0).layer;
  const Shape input = output_of(writer, layer);
  if (input.size() != 2 || input[1] != sizes.features)
    refuse_node(writer.graph, node, "expected an input of batch, time and features (batch_first)");
  const bool all = uses_of(writer, node.output(0)) > 0;
  const bool last = node.output_size() > 1 && uses_of(writer, node.output(1)) > 0;
  if (all && last)
    refuse_node(writer.graph, node, "the output of all time steps and the last state are both read");
  const std::int64_t features = sizes.directions * sizes.hidden;
  append_layer(
      writer, node,
      fmt::format("kind: {}, hidden: {}{}{}", sizes.gates == 4 ? "lstm" : "gru", sizes.hidden,
                  sizes.directions == 2 ? ", bidirectional: true" : "", last ? ", output: last" : ""),
      {layer}, last ? Shape{features} : Shape{input[0], features});
  OnnxValue& output = writer.values[node.output(0)];
  output.view = node.name().empty() ? node.op_type() : node.name();
  if (last) writer.values[node.output(1)] = output;
}

/// Along channels, or a trained token before the others.
void add_concatenation(OnnxWriter& writer, const OnnxNode& node) {
  const Shape output = shape_of(writer, node, node.output(0));
  const std::int64_t rank = output.size() + 1;
  const std::int64_t axis = integer(node, "axis", 0);
  if (axis != 1 && axis + rank != 1) refuse_node(writer.graph, node, "expected axis 1 (channels)");
  if (node.input_size() == 2 && output.size() == 2 && fixed_value(writer, node, 0) != nullptr) {
    const FixedValue* token = fixed_value(writer, node, 0);
    const auto tensor = writer.graph.constants.find(token->initializer);
    const auto sizes = tensor == writer.graph.constants.end() ? 0 : tensor->second->dims_size();
    const Shape shape = take_parameter(writer, node, 0, sizes);
    if (elements(shape) != output[1])
      refuse_node(writer.graph, node, "expected a trained token before the others");
    return append_layer(writer, node, "kind: class_token", {layer_of(writer, node, 1)}, output);
  }
  add_layer(writer, node, "kind: concatenate", node.input_size());
}

}  // namespace stepcast
