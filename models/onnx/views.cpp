#include <fmt/format.h>

#include "models/onnx/graph.hpp"

namespace stepcast {
namespace {

/// Integers that are known, empty if they are not.
std::vector<std::int64_t> numbers_of(const OnnxWriter& writer, const OnnxNode& node, int index) {
  const auto found =
      has_input(node, index) ? writer.graph.numbers.find(node.input(index)) : writer.graph.numbers.end();
  return found == writer.graph.numbers.end() ? std::vector<std::int64_t>{} : found->second.values;
}

const std::string& view_name(const OnnxNode& node) {
  return node.name().empty() ? node.op_type() : node.name();
}

/// The same value in another shape.
void set_view(OnnxWriter& writer, const OnnxNode& node, const std::string& output, int part = -1) {
  OnnxValue value = value_of(writer, node, 0);
  value.view = view_name(node);
  if (part >= 0) value.part = part;
  writer.values[output] = value;
}

/// A mask of what comes later: the last element of its first row differs from the first of its last row,
/// which is as its corners.
bool is_triangular(const onnx::TensorProto& tensor) {
  const int rank = tensor.dims_size();
  const std::size_t width = tensor.data_type() == onnx::TensorProto::FLOAT  ? 4
                            : tensor.data_type() == onnx::TensorProto::BOOL ? 1
                                                                            : 0;
  if (rank < 2 || width == 0 || tensor.dims(rank - 1) != tensor.dims(rank - 2)) return false;
  const std::size_t side = tensor.dims(rank - 1);
  const std::string& bytes = tensor.raw_data();
  if (side < 2 || bytes.size() / width < side || bytes.size() / width / side < side) return false;
  const auto at = [&](std::size_t row, std::size_t column) {
    return bytes.substr((row * side + column) * width, width);
  };
  return at(0, side - 1) != at(side - 1, 0) && at(0, 0) == at(side - 1, 0) &&
         at(0, 0) == at(side - 1, side - 1);
}

/// True for operators that only take elements of their first input.
bool keeps_elements(const std::string& type) {
  static const std::set<std::string> all{"Identity", "Cast",  "Transpose", "Reshape", "Unsqueeze",
                                         "Squeeze",  "Slice", "Gather",    "Expand"};
  return all.count(type) > 0;
}

/// The layer's last time step, if an LSTM or GRU made it and nothing else reads its output.
bool take_last_step(OnnxWriter& writer, const OnnxNode& node, std::int64_t index) {
  const OnnxValue value = value_of(writer, node, 0);
  WrittenLayer* layer = find_layer(writer, value.layer);
  if (layer == nullptr || layer->output.size() != 2 || value.part >= 0) return false;
  const bool recurrent = layer->keys.starts_with("kind: lstm") || layer->keys.starts_with("kind: gru");
  const std::int64_t last = layer->output[0] - 1;
  if (!recurrent || (index != -1 && index != last) || uses_of(writer, node.input(0)) != 1) return false;
  layer->keys += ", output: last";
  layer->output = {layer->output[1]};
  writer.values[node.output(0)] = {.layer = layer->name, .view = view_name(node)};
  return true;
}

/// True if the value still has the shape of its layer: [tokens, features].
bool is_whole_map(const OnnxWriter& writer, const OnnxNode& node) {
  const auto shape = writer.graph.shapes.find(node.input(0));
  const OnnxValue& value = value_of(writer, node, 0);
  return shape != writer.graph.shapes.end() && shape->second.size() == 2 && value.part < 0 &&
         value.form == OnnxValue::Form::layer && shape->second == output_of(writer, value.layer);
}

}  // namespace

void add_initializer(OnnxWriter& writer, const std::string& name) {
  writer.fixed[name] = {name, false, is_triangular(*writer.graph.constants.at(name))};
}

bool add_fixed(OnnxWriter& writer, const OnnxNode& node) {
  FixedValue result;
  if (node.op_type() == "Constant") {
    add_initializer(writer, node.output(0));
    return true;
  }
  if (node.op_type() != "Shape") {
    if (node.input_size() == 0) return false;
    for (int i = 0; i < node.input_size(); ++i) {
      if (!has_input(node, i)) continue;
      const FixedValue* value = fixed_value(writer, node, i);
      if (value == nullptr) return false;
      result.triangular |= value->triangular;
      if (i == 0 && keeps_elements(node.op_type())) {
        result.initializer = value->initializer;
        result.transposed = value->transposed != (node.op_type() == "Transpose");
      }
    }
  }
  if (node.op_type() == "Trilu") result.triangular = true;
  for (const std::string& output : node.output()) writer.fixed[output] = result;
  return true;
}

void add_view(OnnxWriter& writer, const OnnxNode& node) {
  if (node.op_type() == "Identity" || node.op_type() == "Cast") {
    writer.values[node.output(0)] = value_of(writer, node, 0);
    return;
  }
  set_view(writer, node, node.output(0));
}

/// A table's rows for the tokens; one of three parts of a layer's features; the first token or the last time
/// step.
void add_gather(OnnxWriter& writer, const OnnxNode& node) {
  if (fixed_value(writer, node, 0) != nullptr) {
    const Shape table = take_parameter(writer, node, 0, 2);
    if (integer(node, "axis", 0) != 0) refuse_node(writer.graph, node, "expected rows of a table (axis 0)");
    const std::string tokens = layer_of(writer, node, 1);
    return append_layer(writer, node,
                        fmt::format("kind: embedding, rows: {}, columns: {}", table[0], table[1]), {tokens},
                        shape_of(writer, node, node.output(0)));
  }
  const std::vector<std::int64_t> index = numbers_of(writer, node, 1);
  if (index.size() != 1) refuse_node(writer.graph, node, "expected one constant index");
  if (take_last_step(writer, node, index[0])) return;
  if (integer(node, "axis", 0) == 1 && index[0] == 0 && is_whole_map(writer, node))
    return add_layer(writer, node, "kind: first_token");
  if (index[0] < 0 || index[0] > 2 || value_of(writer, node, 0).view.empty())
    refuse_node(writer.graph, node,
                "takes a part that is neither the first token nor queries, keys or values of attention");
  set_view(writer, node, node.output(0), index[0]);
}

/// A third of the features, or the last time step.
void add_slice(OnnxWriter& writer, const OnnxNode& node) {
  const auto starts = numbers_of(writer, node, 1), ends = numbers_of(writer, node, 2);
  if (starts.size() != 1 || ends.size() != 1) refuse_node(writer.graph, node, "expected one constant range");
  if (starts[0] == -1 && take_last_step(writer, node, -1)) return;
  const Shape whole = shape_of(writer, node, node.input(0)), part = shape_of(writer, node, node.output(0));
  const std::int64_t size = part.back();
  const bool third = size > 0 && whole.back() / 3 == size && whole.back() % 3 == 0 && starts[0] >= 0 &&
                     starts[0] % size == 0 && starts[0] / size < 3;
  if (!third)
    refuse_node(writer.graph, node, "takes a part that is not queries, keys or values of attention");
  set_view(writer, node, node.output(0), starts[0] / size);
}

void add_split(OnnxWriter& writer, const OnnxNode& node) {
  if (node.output_size() != 3)
    refuse_node(writer.graph, node, "expected three parts: queries, keys and values of attention");
  for (int i = 0; i < 3; ++i) set_view(writer, node, node.output(i), i);
}

}  // namespace stepcast
