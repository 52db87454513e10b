#include "models/onnx/network_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cctype>
#include <cstring>
#include <set>

#include "core/error.hpp"
#include "core/yaml.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/network/model.hpp"
#include "models/onnx/graph.hpp"

namespace stepcast {
namespace {

using Node = onnx::NodeProto;

struct WrittenLayer {
  std::string name;
  std::string keys;  ///< of YAML, with the kind first
  std::vector<std::string> inputs;
  Shape output;  ///< as ONNX infers it; empty: unknown, or a loss
};

struct Writer {
  OnnxGraph graph;
  std::vector<WrittenLayer> layers;
  std::map<std::string, std::string> layer_of;      ///< the layer that computes an activation
  std::map<std::string, std::size_t> without_bias;  ///< outputs of MatMul: an addition may bring the bias
  std::set<std::string> names;
  std::set<std::string> trained;  ///< initializers that layers own
};

const onnx::AttributeProto* attribute(const Node& node, const std::string& name) {
  for (const auto& one : node.attribute())
    if (one.name() == name) return &one;
  return nullptr;
}

std::int64_t integer(const Node& node, const std::string& name, std::int64_t otherwise) {
  const auto* found = attribute(node, name);
  return found == nullptr ? otherwise : found->i();
}

double number(const Node& node, const std::string& name, double otherwise) {
  const auto* found = attribute(node, name);
  return found == nullptr ? otherwise : static_cast<double>(found->f());
}

std::vector<std::int64_t> integers(const Node& node, const std::string& name, std::size_t count,
                                   std::int64_t otherwise) {
  const auto* found = attribute(node, name);
  return found == nullptr ? std::vector<std::int64_t>(count, otherwise)
                          : std::vector<std::int64_t>(found->ints().begin(), found->ints().end());
}

std::string list(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

bool has_input(const Node& node, int index) {
  return index < node.input_size() && !node.input(index).empty();
}

const onnx::TensorProto* constant(const Writer& writer, const Node& node, int index) {
  if (!has_input(node, index)) return nullptr;
  const auto found = writer.graph.constants.find(node.input(index));
  return found == writer.graph.constants.end() ? nullptr : found->second;
}

/// Takes an input of the node as a parameter. @returns its shape
Shape take_parameter(Writer& writer, const Node& node, int index, std::size_t dimensions) {
  const onnx::TensorProto* tensor = constant(writer, node, index);
  if (tensor == nullptr)
    refuse_node(writer.graph, node, fmt::format("expected an initializer as input {}", index));
  const Shape shape(tensor->dims().begin(), tensor->dims().end());
  if (shape.size() != dimensions)
    refuse_node(writer.graph, node,
                fmt::format("expected an initializer with {} sizes as input {}", dimensions, index));
  if (!writer.trained.insert(node.input(index)).second)
    refuse_node(writer.graph, node, "shares its parameters with another node, which is not supported");
  return shape;
}

const Shape& shape_of(const Writer& writer, const Node& node, const std::string& value) {
  const auto found = writer.graph.shapes.find(value);
  if (found == writer.graph.shapes.end())
    refuse_node(writer.graph, node,
                "ONNX infers no shape for its input or output, or its first size is not the batch");
  return found->second;
}

const std::string& layer_of(const Writer& writer, const Node& node, int index) {
  if (has_input(node, index)) {
    const auto found = writer.layer_of.find(node.input(index));
    if (found != writer.layer_of.end()) return found->second;
  }
  refuse_node(writer.graph, node, fmt::format("input {} is not the output of an earlier node", index));
}

std::string unique_name(Writer& writer, const std::string& wanted) {
  std::string name;
  for (const char c : wanted) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if ((plain || !name.empty()) && name.size() < 48) name += plain ? c : '_';
  }
  if (name.empty() || name == "input" || name == "previous") name = "layer";
  std::string unique = name;
  for (int i = 2; !writer.names.insert(unique).second; ++i) unique = fmt::format("{}_{}", name, i);
  return unique;
}

/// Appends the layer of a node; `inputs` is the number of activations that it reads.
void add_layer(Writer& writer, const Node& node, const std::string& keys, int inputs = 1) {
  WrittenLayer layer;
  layer.name = unique_name(writer, node.name().empty() ? node.op_type() : node.name());
  layer.keys = keys;
  for (int i = 0; i < inputs; ++i) layer.inputs.push_back(layer_of(writer, node, i));
  layer.output = shape_of(writer, node, node.output(0));
  writer.layer_of[node.output(0)] = layer.name;
  writer.layers.push_back(layer);
}

void add_loss(Writer& writer, const std::string& kind, const std::string& input) {
  writer.layers.push_back({unique_name(writer, "loss"), "kind: " + kind, {input}, {}});
}

bool is_graph_output(const Writer& writer, const std::string& value) {
  for (const auto& output : writer.graph.model.graph().output())
    if (output.name() == value) return true;
  return false;
}

/// True if the value leaves the graph and no node reads it.
bool is_last(const Writer& writer, const Node& node) {
  return is_graph_output(writer, node.output(0)) && writer.graph.uses.at(node.output(0)) == 1;
}

std::string window_keys(const Writer& writer, const Node& node, const Shape& kernel) {
  const std::size_t count = kernel.size();
  for (const std::int64_t dilation : integers(node, "dilations", count, 1))
    if (dilation != 1) refuse_node(writer.graph, node, "dilations other than 1 are not supported");
  const auto strides = integers(node, "strides", count, 1);
  const auto pads = integers(node, "pads", 2 * count, 0);
  if (strides.size() != count || pads.size() != 2 * count)
    refuse_node(writer.graph, node, "strides or pads do not fit the kernel");
  const auto* automatic = attribute(node, "auto_pad");
  const std::string pad = automatic == nullptr ? "NOTSET" : automatic->s();
  if (pad != "NOTSET" && pad != "VALID" && pad != "SAME_UPPER")
    refuse_node(writer.graph, node, "expected auto_pad NOTSET, VALID or SAME_UPPER");
  const auto middle = pads.begin() + static_cast<std::ptrdiff_t>(count);
  return fmt::format("kernel: {}, stride: {}, pad: {}", list(kernel), list(strides),
                     pad == "SAME_UPPER"
                         ? "same"
                         : fmt::format("{{before: {}, after: {}}}", list({pads.begin(), middle}),
                                       list({middle, pads.end()})));
}

std::string bias_key(bool has_bias) {
  return has_bias ? "" : ", bias: false";
}

void add_convolution(Writer& writer, const Node& node) {
  if (integer(node, "group", 1) != 1)
    refuse_node(writer.graph, node, "stepcast has no convolution with groups");
  const Shape& input = shape_of(writer, node, node.input(0));
  const Shape weight = take_parameter(writer, node, 1, input.size() + 1);
  const bool bias = has_input(node, 2);
  if (bias) take_parameter(writer, node, 2, 1);
  add_layer(writer, node,
            fmt::format("kind: convolution, filters: {}, {}{}", weight[0],
                        window_keys(writer, node, {weight.begin() + 2, weight.end()}), bias_key(bias)));
}

void add_gemm(Writer& writer, const Node& node) {
  if (integer(node, "transA", 0) != 0) refuse_node(writer.graph, node, "transA is not supported");
  const Shape weight = take_parameter(writer, node, 1, 2);
  const bool bias = has_input(node, 2);
  if (bias) take_parameter(writer, node, 2, 1);
  add_layer(writer, node,
            fmt::format("kind: dense, units: {}{}", weight[integer(node, "transB", 0) != 0 ? 0 : 1],
                        bias_key(bias)));
}

void add_product(Writer& writer, const Node& node) {
  const Shape weight = take_parameter(writer, node, 1, 2);
  add_layer(writer, node, fmt::format("kind: dense, units: {}, bias: false", weight[1]));
  if (writer.graph.uses[node.output(0)] == 1) writer.without_bias[node.output(0)] = writer.layers.size() - 1;
}

/// The addition of an initializer to a product, which is the bias of the dense layer.
void add_bias(Writer& writer, const Node& node, int bias) {
  const auto product = writer.without_bias.find(node.input(1 - bias));
  if (product == writer.without_bias.end())
    refuse_node(writer.graph, node, "adds an initializer that is not the bias of a MatMul");
  take_parameter(writer, node, bias, 1);
  WrittenLayer& layer = writer.layers[product->second];
  layer.keys.resize(layer.keys.rfind(", bias"));
  writer.layer_of[node.output(0)] = layer.name;
}

void add_sum(Writer& writer, const Node& node) {
  for (int i = 0; i < 2 && node.input_size() == 2; ++i)
    if (constant(writer, node, i) != nullptr) return add_bias(writer, node, i);
  add_layer(writer, node, "kind: add", node.input_size());
}

void add_batch_norm(Writer& writer, const Node& node) {
  for (int i = 1; i <= 2; ++i) take_parameter(writer, node, i, 1);
  for (int i = 3; i <= 4; ++i)
    if (constant(writer, node, i) == nullptr)
      refuse_node(writer.graph, node, "expected initializers as mean and variance");
  add_layer(writer, node, "kind: batch_norm");
}

void add_layer_norm(Writer& writer, const Node& node) {
  const std::int64_t last = static_cast<std::int64_t>(shape_of(writer, node, node.input(0)).size());
  const std::int64_t axis = integer(node, "axis", -1);
  if ((axis != -1 && axis != last) || !has_input(node, 2))
    refuse_node(writer.graph, node, "expected the last axis, a scale and a shift");
  for (int i = 1; i <= 2; ++i) take_parameter(writer, node, i, 1);
  add_layer(writer, node, "kind: layer_norm");
}

void add_pool(Writer& writer, const Node& node) {
  const auto kernel = integers(node, "kernel_shape", 0, 0);
  add_layer(writer, node,
            fmt::format("kind: {}, {}", node.op_type() == "MaxPool" ? "max_pool" : "average_pool",
                        window_keys(writer, node, kernel)));
}

void add_global_pool(Writer& writer, const Node& node) {
  const Shape& input = shape_of(writer, node, node.input(0));
  add_layer(writer, node,
            fmt::format("kind: average_pool, kernel: {}", list({input.begin() + 1, input.end()})));
}

void add_concatenation(Writer& writer, const Node& node) {
  const std::int64_t rank = static_cast<std::int64_t>(shape_of(writer, node, node.output(0)).size()) + 1;
  const std::int64_t axis = integer(node, "axis", 0);
  if (axis != 1 && axis + rank != 1) refuse_node(writer.graph, node, "expected axis 1 (channels)");
  add_layer(writer, node, "kind: concatenate", node.input_size());
}

void add_reshape(Writer& writer, const Node& node) {
  add_layer(writer, node, "kind: reshape, shape: " + list(shape_of(writer, node, node.output(0))));
}

void add_dropout(Writer& writer, const Node& node) {
  double rate = number(node, "ratio", 0.5);
  if (has_input(node, 1)) {
    const onnx::TensorProto* tensor = constant(writer, node, 1);
    float read = 0;
    if (tensor == nullptr || tensor->data_type() != onnx::TensorProto::FLOAT ||
        (tensor->float_data_size() != 1 && tensor->raw_data().size() != sizeof read))
      refuse_node(writer.graph, node, "expected one 32-bit number as ratio");
    if (tensor->float_data_size() == 1)
      read = tensor->float_data(0);
    else
      std::memcpy(&read, tensor->raw_data().data(), sizeof read);
    rate = read;
  }
  add_layer(writer, node, fmt::format("kind: dropout, rate: {:.6g}", rate));
}

void add_softmax(Writer& writer, const Node& node) {
  if (!is_last(writer, node)) refuse_node(writer.graph, node, "stands before other nodes, not at the end");
  add_loss(writer, "softmax_cross_entropy", layer_of(writer, node, 0));
  writer.layer_of[node.output(0)] = "";
}

void add_sigmoid(Writer& writer, const Node& node) {
  if (!is_last(writer, node)) return add_layer(writer, node, "kind: sigmoid");
  add_loss(writer, "sigmoid_cross_entropy", layer_of(writer, node, 0));
  writer.layer_of[node.output(0)] = "";
}

void add_identity(Writer& writer, const Node& node) {
  const std::string layer = layer_of(writer, node, 0);
  writer.layer_of[node.output(0)] = layer;
}

using AddNode = void (*)(Writer&, const Node&);

const std::map<std::string, AddNode>& operators() {
  static const std::map<std::string, AddNode> all = {
      {"Conv", add_convolution},
      {"Gemm", add_gemm},
      {"MatMul", add_product},
      {"Add", add_sum},
      {"BatchNormalization", add_batch_norm},
      {"LayerNormalization", add_layer_norm},
      {"MaxPool", add_pool},
      {"AveragePool", add_pool},
      {"GlobalAveragePool", add_global_pool},
      {"Concat", add_concatenation},
      {"Flatten", add_reshape},
      {"Reshape", add_reshape},
      {"Dropout", add_dropout},
      {"Softmax", add_softmax},
      {"LogSoftmax", add_softmax},
      {"Sigmoid", add_sigmoid},
      {"Identity", add_identity},
      {"Constant", [](Writer&, const Node&) {}},
      {"Relu", [](Writer& writer, const Node& node) { add_layer(writer, node, "kind: relu"); }},
      {"Tanh", [](Writer& writer, const Node& node) { add_layer(writer, node, "kind: tanh"); }},
      {"Gelu", [](Writer& writer, const Node& node) { add_layer(writer, node, "kind: gelu"); }},
  };
  return all;
}

bool has_layer(const std::string& operator_type) {
  return operators().count(operator_type) > 0;
}

std::string text_of(const Writer& writer, const std::string& name) {
  std::string text =
      fmt::format("name: {}\nsource: \"ONNX graph; losses follow from its outputs\"\ninput: {}\nlayers:\n",
                  quoted(name), list(writer.graph.shapes.at(writer.graph.input)));
  for (const WrittenLayer& layer : writer.layers) {
    std::vector<std::string> inputs;  // quoted, because a node may be named like YAML's null or a number
    for (const std::string& input : layer.inputs) inputs.push_back(quoted(input));
    text += fmt::format("  - {{name: {}, {}, inputs: [{}]}}\n", quoted(layer.name), layer.keys,
                        fmt::join(inputs, ", "));
  }
  return text;
}

/// Compares what stepcast makes of the text with the graph: shapes, and numbers of parameters.
void check_text(const Writer& writer, const std::string& text) {
  const YamlNode node = parse_yaml(text, writer.graph.file);
  const Model model = read_model(YamlValue(node, ""));
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const WrittenLayer& layer = writer.layers.at(i);
    if (!layer.output.empty() && layer.output != model.layers[i].output)
      throw InputError(fmt::format("{}: node {}: expected the shape {}, as ONNX infers it, got {}",
                                   writer.graph.file, layer.name, to_string(layer.output),
                                   to_string(model.layers[i].output)));
  }
  std::int64_t parameters = 0;
  for (const std::string& one : writer.trained) {
    const auto& dims = writer.graph.constants.at(one)->dims();
    parameters += elements({dims.begin(), dims.end()});
  }
  if (parameters != trainable_parameters(model))
    throw InputError(fmt::format("{}: expected {} parameters, as its initializers have, got {}",
                                 writer.graph.file, parameters, trainable_parameters(model)));
}

}  // namespace

std::string onnx_network_text(std::istream& bytes, const std::string& file, const std::string& name) {
  Writer writer{read_onnx_graph(bytes, file, has_layer), {}, {}, {}, {}, {}};
  const onnx::GraphProto& graph = writer.graph.model.graph();
  if (writer.graph.shapes.count(writer.graph.input) == 0)
    throw InputError(fmt::format("{}: the sizes of its input are not known", file));
  writer.layer_of[writer.graph.input] = "input";
  for (const Node& node : graph.node()) {
    for (int i = 1; i < node.output_size(); ++i)
      if (writer.graph.uses.count(node.output(i)) > 0)
        refuse_node(writer.graph, node, "only its first output is supported");
    if (node.op_type() != "Constant" && !has_input(node, 0)) refuse_node(writer.graph, node, "has no input");
    operators().at(node.op_type())(writer, node);
  }
  for (const auto& output : graph.output()) {
    const auto layer = writer.layer_of.find(output.name());
    if (layer == writer.layer_of.end()) throw InputError(fmt::format("{}: no node computes an output", file));
    if (!layer->second.empty()) add_loss(writer, "softmax_cross_entropy", layer->second);
  }
  const std::string text = text_of(writer, name);
  check_text(writer, text);
  return text;
}

}  // namespace stepcast
