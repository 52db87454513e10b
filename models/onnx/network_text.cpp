#include "models/onnx/network_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/error.hpp"
#include "core/text.hpp"
#include "core/yaml.hpp"
#include "models/network/model.hpp"
#include "models/onnx/graph.hpp"

namespace stepcast {
namespace {

using AddNode = void (*)(OnnxWriter&, const OnnxNode&);

/// Kinds of layers without keys, by their operator. ReLU with an upper bound (Clip), such as ReLU6, takes as
/// long as ReLU.
const std::map<std::string, std::string>& plain_kinds() {
  static const std::map<std::string, std::string> all = {{"Relu", "relu"},
                                                         {"Clip", "relu"},
                                                         {"Gelu", "gelu"},
                                                         {"HardSigmoid", "sigmoid"},
                                                         {"HardSwish", "silu"}};
  return all;
}

void add_leaky_relu(OnnxWriter& writer, const OnnxNode& node) {
  const double slope = number(node, "alpha", 0.01);
  if (!(slope >= 0)) refuse_node(writer.graph, node, "expected a slope of at least 0");
  add_layer(writer, node, fmt::format("kind: leaky_relu, slope: {:.6g}", slope));
}

/// Operators that compute sizes and masks, or change them. On activations they are no layers.
void refuse_activation(OnnxWriter& writer, const OnnxNode& node) {
  refuse_node(writer.graph, node, "has no kind of layer in stepcast, as its input depends on the network's");
}

const std::map<std::string, AddNode>& operators() {
  static const std::map<std::string, AddNode> all = {
      {"Conv", add_convolution},
      {"Gemm", add_gemm},
      {"MatMul", add_product},
      {"BatchNormalization", add_batch_norm},
      {"LayerNormalization", add_layer_norm},
      {"MaxPool", add_pool},
      {"AveragePool", add_pool},
      {"GlobalAveragePool", add_global_pool},
      {"ReduceMean", add_mean},
      {"Concat", add_concatenation},
      {"Dropout", add_dropout},
      {"LSTM", add_recurrent},
      {"GRU", add_recurrent},
      {"Softmax", add_softmax},
      {"LogSoftmax", add_softmax},
      {"Sigmoid", add_sigmoid},
      {"LeakyRelu", add_leaky_relu},
      {"Add", add_arithmetic},
      {"Sum", add_arithmetic},
      {"Sub", add_arithmetic},
      {"Mul", add_arithmetic},
      {"Div", add_arithmetic},
      {"Pow", add_arithmetic},
      {"Where", add_arithmetic},
      {"Erf", add_function},
      {"Tanh", add_function},
      {"Sqrt", add_function},
      {"IsNaN", add_function},
      {"Identity", add_view},
      {"Cast", add_view},
      {"Flatten", add_view},
      {"Reshape", add_view},
      {"Transpose", add_view},
      {"Squeeze", add_view},
      {"Unsqueeze", add_view},
      {"Expand", add_view},
      {"Gather", add_gather},
      {"Slice", add_slice},
      {"Split", add_split},
      {"Constant", refuse_activation},
      {"Shape", refuse_activation},
      {"ConstantOfShape", refuse_activation},
      {"ReduceProd", refuse_activation},
      {"Equal", refuse_activation},
      {"Trilu", refuse_activation},
  };
  return all;
}

bool has_layer(const std::string& operator_type) {
  return operators().count(operator_type) > 0 || plain_kinds().count(operator_type) > 0;
}

/// True if outputs of the node after the first one have a meaning here.
bool has_outputs(const std::string& operator_type) {
  return operator_type == "Split" || operator_type == "LSTM" || operator_type == "GRU";
}

void add_node(OnnxWriter& writer, const OnnxNode& node) {
  for (int i = 1; i < node.output_size() && !has_outputs(node.op_type()); ++i)
    if (uses_of(writer, node.output(i)) > 0)
      refuse_node(writer.graph, node, "only its first output is supported");
  if (node.op_type() != "Constant" && !has_input(node, 0)) refuse_node(writer.graph, node, "has no input");
  if (add_fixed(writer, node)) return;
  const auto plain = plain_kinds().find(node.op_type());
  if (plain != plain_kinds().end()) {
    const bool same = node.op_type() == "Relu" || node.op_type() == "Gelu";
    if (!same) writer.replaced.insert(node.op_type() + " as " + plain->second);
    return add_layer(writer, node, "kind: " + plain->second);
  }
  operators().at(node.op_type())(writer, node);
}

std::string names(const std::vector<std::string>& inputs) {
  std::vector<std::string> shown;
  for (const std::string& input : inputs) shown.push_back(printable(input));
  return fmt::format("{}", fmt::join(shown, ", "));
}

std::string text_of(const OnnxWriter& writer, const std::string& name) {
  std::string source = "ONNX graph; losses follow from its outputs";
  if (!writer.graph.more_ids.empty())
    source += fmt::format("; inputs {} are counted as the same integers as {}", names(writer.graph.more_ids),
                          writer.graph.input);
  if (!writer.replaced.empty())
    source += fmt::format("; nodes counted as others: {}", fmt::join(writer.replaced, ", "));
  if (!writer.left_out.empty())
    source += fmt::format("; arithmetic on the input ({}) is left out", names(writer.left_out));
  if (!writer.graph.masks.empty())
    source += fmt::format("; masks {} are taken as fixed", names(writer.graph.masks));
  std::string text = fmt::format("name: {}\nsource: {}\ninput: {}\nlayers:\n", yaml_quoted(name),
                                 yaml_quoted(source), list(writer.graph.shapes.at(writer.graph.input)));
  for (const WrittenLayer& layer : writer.layers) {
    if (layer.removed) continue;
    std::vector<std::string> inputs;  // quoted, because a node may be named like YAML's null or a number
    for (const std::string& input : layer.inputs) inputs.push_back(yaml_quoted(input));
    text += fmt::format("  - {{name: {}, {}, inputs: [{}]}}\n", yaml_quoted(layer.name), layer.keys,
                        fmt::join(inputs, ", "));
  }
  return text;
}

/// Queries, keys and values of an attention became one layer, whose parts nothing else may read.
void check_removed(const OnnxWriter& writer) {
  std::set<std::string> removed;
  for (const WrittenLayer& layer : writer.layers)
    if (layer.removed) removed.insert(layer.name);
  for (const WrittenLayer& layer : writer.layers) {
    for (const std::string& input : layer.inputs)
      if (!layer.removed && removed.count(input) > 0)
        throw InputError(fmt::format("{}: node {}: reads keys or values of an attention that is not its own",
                                     writer.graph.file, layer.name));
  }
}

/// Compares what stepcast makes of the text with the graph: shapes, and numbers of parameters.
void check_text(const OnnxWriter& writer, const std::string& text) {
  const YamlNode node = parse_yaml(text, writer.graph.file);
  const Model model = read_model(YamlValue(node, ""));
  auto layer = model.layers.begin();
  for (const WrittenLayer& written : writer.layers) {
    if (written.removed) continue;
    if (!written.output.empty() && written.output != layer->output)
      throw InputError(fmt::format("{}: node {}: expected the shape {}, as ONNX infers it, got {}",
                                   writer.graph.file, written.name, to_string(written.output),
                                   to_string(layer->output)));
    ++layer;
  }
  if (writer.trained_elements != trainable_parameters(model))
    throw InputError(fmt::format("{}: expected {} parameters, as its initializers have, got {}",
                                 writer.graph.file, writer.trained_elements, trainable_parameters(model)));
}

}  // namespace

std::string onnx_network_text(std::istream& bytes, const std::string& file, const std::string& name,
                              const std::map<std::string, std::int64_t>& sizes) {
  OnnxWriter writer{.graph = read_onnx_graph(bytes, file, has_layer, sizes)};
  const onnx::GraphProto& graph = writer.graph.model.graph();
  if (writer.graph.shapes.count(writer.graph.input) == 0)
    throw InputError(fmt::format("{}: the sizes of its input are not known", file));
  writer.values[writer.graph.input] = {.layer = "input"};
  for (const std::string& input : writer.graph.more_ids) writer.values[input] = {.layer = "input"};
  for (const std::string& mask : writer.graph.masks) writer.fixed[mask] = {};
  for (const auto& tensor : graph.initializer()) add_initializer(writer, tensor.name());
  for (const OnnxNode& node : graph.node()) add_node(writer, node);
  for (const auto& output : graph.output()) {
    const auto value = writer.values.find(output.name());
    if (value == writer.values.end()) throw InputError(fmt::format("{}: no node computes an output", file));
    if (!value->second.layer.empty())
      add_loss(writer, "softmax_cross_entropy", layer_of_output(writer, output.name()));
  }
  check_removed(writer);
  std::string text = text_of(writer, name);
  check_text(writer, text);
  return text;
}

}  // namespace stepcast
