#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>

#include "models/onnx/graph.hpp"

namespace stepcast {
namespace {

std::string unique_name(OnnxWriter& writer, const std::string& wanted) {
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

const std::string& name_of(const OnnxNode& node) {
  return node.name().empty() ? node.op_type() : node.name();
}

}  // namespace

const onnx::AttributeProto* attribute(const OnnxNode& node, const std::string& name) {
  for (const auto& one : node.attribute())
    if (one.name() == name) return &one;
  return nullptr;
}

std::int64_t integer(const OnnxNode& node, const std::string& name, std::int64_t otherwise) {
  const auto* found = attribute(node, name);
  return found == nullptr ? otherwise : found->i();
}

double number(const OnnxNode& node, const std::string& name, double otherwise) {
  const auto* found = attribute(node, name);
  return found == nullptr ? otherwise : found->f();
}

std::vector<std::int64_t> integers(const OnnxNode& node, const std::string& name, std::size_t count,
                                   std::int64_t otherwise) {
  const auto* found = attribute(node, name);
  return found == nullptr ? std::vector<std::int64_t>(count, otherwise)
                          : std::vector<std::int64_t>(found->ints().begin(), found->ints().end());
}

std::string list(const std::vector<std::int64_t>& numbers) {
  return fmt::format("[{}]", fmt::join(numbers, ", "));
}

bool has_input(const OnnxNode& node, int index) {
  return index < node.input_size() && !node.input(index).empty();
}

const onnx::TensorProto* constant(const OnnxWriter& writer, const OnnxNode& node, int index) {
  if (!has_input(node, index)) return nullptr;
  const auto found = writer.graph.constants.find(node.input(index));
  return found == writer.graph.constants.end() ? nullptr : found->second;
}

const FixedValue* fixed_value(const OnnxWriter& writer, const OnnxNode& node, int index) {
  if (!has_input(node, index)) return nullptr;
  const auto found = writer.fixed.find(node.input(index));
  return found == writer.fixed.end() ? nullptr : &found->second;
}

bool is_scalar(const OnnxWriter& writer, const OnnxNode& node, int index) {
  const onnx::TensorProto* tensor = constant(writer, node, index);
  if (tensor != nullptr) return elements({tensor->dims().begin(), tensor->dims().end()}) <= 1;
  const FixedValue* value = fixed_value(writer, node, index);
  if (value == nullptr || value->initializer.empty()) return value != nullptr;
  const auto& dims = writer.graph.constants.at(value->initializer)->dims();
  return elements({dims.begin(), dims.end()}) <= 1;
}

namespace {

bool is_floating(int type) {
  return type == onnx::TensorProto::FLOAT || type == onnx::TensorProto::FLOAT16 ||
         type == onnx::TensorProto::BFLOAT16 || type == onnx::TensorProto::DOUBLE;
}

}  // namespace

Shape take_parameter(OnnxWriter& writer, const OnnxNode& node, int index, std::size_t dimensions) {
  const FixedValue* value = fixed_value(writer, node, index);
  if (value == nullptr || value->initializer.empty())
    refuse_node(writer.graph, node, fmt::format("expected an initializer as input {}", index));
  const onnx::TensorProto& tensor = *writer.graph.constants.at(value->initializer);
  if (!is_floating(tensor.data_type()))
    refuse_node(writer.graph, node,
                fmt::format("expected an initializer in floating point as input {}", index));
  Shape shape(tensor.dims().begin(), tensor.dims().end());
  if (shape.size() != dimensions)
    refuse_node(writer.graph, node,
                fmt::format("expected an initializer with {} sizes as input {}", dimensions, index));
  if (!writer.trained.insert(value->initializer).second)
    refuse_node(writer.graph, node, "shares its parameters with another node, which is not supported");
  writer.trained_elements += elements(shape);
  if (value->transposed) std::reverse(shape.begin(), shape.end());
  return shape;
}

void take_bias(OnnxWriter& writer, const OnnxNode& node, int index, std::int64_t units, std::size_t after) {
  const FixedValue* value = fixed_value(writer, node, index);
  const auto tensor =
      value == nullptr ? writer.graph.constants.end() : writer.graph.constants.find(value->initializer);
  const std::size_t sizes =
      tensor == writer.graph.constants.end() ? 1 : static_cast<std::size_t>(tensor->second->dims_size());
  const Shape shape = take_parameter(writer, node, index, sizes);
  const bool place = shape.size() > after ? shape[shape.size() - 1 - after] == units : units == 1;
  if (!place || elements(shape) != units)
    refuse_node(
        writer.graph, node,
        fmt::format("expected a bias of {} elements, one for each unit, got {}", units, to_string(shape)));
}

const Shape& shape_of(const OnnxWriter& writer, const OnnxNode& node, const std::string& value) {
  const auto found = writer.graph.shapes.find(value);
  if (found == writer.graph.shapes.end())
    refuse_node(writer.graph, node,
                "ONNX infers no shape for its input or output, or its first size is not the batch");
  return found->second;
}

const OnnxValue& value_of(const OnnxWriter& writer, const OnnxNode& node, int index) {
  if (has_input(node, index)) {
    const auto found = writer.values.find(node.input(index));
    if (found != writer.values.end() && !found->second.layer.empty()) return found->second;
  }
  refuse_node(writer.graph, node, fmt::format("input {} is not the output of an earlier node", index));
}

WrittenLayer* find_layer(OnnxWriter& writer, const std::string& name) {
  const auto found = std::find_if(writer.layers.rbegin(), writer.layers.rend(),
                                  [&](const WrittenLayer& one) { return one.name == name; });
  return found == writer.layers.rend() ? nullptr : &*found;
}

const Shape& output_of(const OnnxWriter& writer, const std::string& layer) {
  for (auto one = writer.layers.rbegin(); one != writer.layers.rend(); ++one)
    if (one->name == layer) return one->output;
  return writer.graph.shapes.at(writer.graph.input);
}

std::string layer_of(OnnxWriter& writer, const OnnxNode& node, int index) {
  OnnxValue value = value_of(writer, node, index);
  if (value.form != OnnxValue::Form::layer || value.part >= 0)
    refuse_node(
        writer.graph, node,
        fmt::format("input {} is a part of attention, a norm or an activation that is written out in a "
                    "form that stepcast does not know",
                    index));
  if (value.view.empty()) return value.layer;
  const Shape shape = shape_of(writer, node, node.input(index));
  if (shape == output_of(writer, value.layer)) return value.layer;
  WrittenLayer reshape;
  reshape.name = unique_name(writer, value.view);
  reshape.keys = "kind: reshape, shape: " + list(shape);
  reshape.inputs = {value.layer};
  reshape.output = shape;
  writer.layers.push_back(reshape);
  writer.values[node.input(index)] = {.layer = reshape.name};
  return reshape.name;
}

std::string layer_of_output(OnnxWriter& writer, const std::string& output) {
  OnnxNode node;  // as a node that reads it
  node.set_name(output);
  node.set_op_type("output");
  node.add_input(output);
  return layer_of(writer, node, 0);
}

void append_layer(OnnxWriter& writer, const OnnxNode& node, const std::string& keys,
                  const std::vector<std::string>& inputs, const Shape& output) {
  WrittenLayer layer;
  layer.name = unique_name(writer, name_of(node));
  layer.keys = keys;
  layer.inputs = inputs;
  layer.output = output;
  writer.values[node.output(0)] = {.layer = layer.name};
  writer.layers.push_back(layer);
}

void append_dense(OnnxWriter& writer, const OnnxNode& node, std::int64_t features, std::int64_t units,
                  const std::string& keys) {
  const OnnxValue value = value_of(writer, node, 0);
  const bool whole = value.form == OnnxValue::Form::layer && value.part < 0;
  const bool rows = whole && writer.graph.shapes.count(node.input(0)) == 0 &&
                    output_of(writer, value.layer).size() == 2 &&
                    output_of(writer, value.layer).back() == features;
  const std::string keys_of_kind = fmt::format("kind: dense, units: {}{}", units, keys);
  if (!rows) return add_layer(writer, node, keys_of_kind);
  append_layer(writer, node, keys_of_kind, {value.layer}, {output_of(writer, value.layer).front(), units});
  writer.values[node.output(0)].view = value.view;
}

void add_layer(OnnxWriter& writer, const OnnxNode& node, const std::string& keys, int inputs) {
  std::vector<std::string> sources;
  for (int i = 0; i < inputs; ++i) sources.push_back(layer_of(writer, node, i));
  append_layer(writer, node, keys, sources, shape_of(writer, node, node.output(0)));
}

void add_loss(OnnxWriter& writer, const std::string& kind, const std::string& input) {
  WrittenLayer loss;
  loss.name = unique_name(writer, "loss");
  loss.keys = "kind: " + kind;
  loss.inputs = {input};
  writer.layers.push_back(loss);
}

int uses_of(const OnnxWriter& writer, const std::string& value) {
  const auto found = writer.graph.uses.find(value);
  return found == writer.graph.uses.end() ? 0 : found->second;
}

bool is_last(const OnnxWriter& writer, const OnnxNode& node) {
  const auto& outputs = writer.graph.model.graph().output();
  const bool leaves = std::any_of(outputs.begin(), outputs.end(),
                                  [&](const auto& one) { return one.name() == node.output(0); });
  return leaves && uses_of(writer, node.output(0)) == 1;
}

}  // namespace stepcast
