#pragma once

#include <sstream>
#include <string>
#include <vector>

#include "models/network/model.hpp"
#include "models/onnx/graph.hpp"
#include "models/onnx/network_text.hpp"

namespace stepcast {

/// A graph that a test builds; its initializers have shapes and no values.
struct Graph {
  onnx::ModelProto model;

  explicit Graph(const Shape& input) {
    model.set_ir_version(8);
    model.add_opset_import()->set_version(17);
    model.mutable_graph()->set_name("g");
    value(*model.mutable_graph()->add_input(), "x", input);
  }

  static void value(onnx::ValueInfoProto& info, const std::string& name, const Shape& sizes) {
    info.set_name(name);
    info.mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    auto* shape = info.mutable_type()->mutable_tensor_type()->mutable_shape();
    shape->add_dim()->set_dim_param("N");
    for (const std::int64_t size : sizes) shape->add_dim()->set_dim_value(size);
  }

  onnx::TensorProto& weight(const std::string& name, const Shape& sizes) {
    auto* tensor = model.mutable_graph()->add_initializer();
    tensor->set_name(name);
    tensor->set_data_type(onnx::TensorProto::FLOAT);
    for (const std::int64_t size : sizes) tensor->add_dims(size);
    return *tensor;
  }

  onnx::NodeProto& node(const std::string& type, const std::vector<std::string>& inputs,
                        const std::string& output) {
    auto* one = model.mutable_graph()->add_node();
    one->set_op_type(type);
    one->set_name(output + "_node");
    for (const auto& input : inputs) one->add_input(input);
    one->add_output(output);
    return *one;
  }

  std::string bytes(const std::string& output) const {
    onnx::ModelProto copy = model;
    auto* info = copy.mutable_graph()->add_output();
    info->set_name(output);
    info->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
    return copy.SerializeAsString();
  }
};

inline void set(onnx::NodeProto& node, const std::string& name, const Shape& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute->add_ints(value);
}

inline void set_integer(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

inline std::string text(const std::string& bytes) {
  std::istringstream stream(bytes);
  return onnx_network_text(stream, "net.onnx", "my-net");
}

inline void add_numbers(Graph& graph, const std::string& name, const Shape& numbers) {
  auto& tensor = graph.weight(name, {std::ssize(numbers)});
  tensor.set_data_type(onnx::TensorProto::INT64);
  for (const std::int64_t number : numbers) tensor.add_int64_data(number);
}

inline std::string kinds(const Model& model) {
  std::string text;
  for (const Layer& layer : model.layers)
    text += std::string(text.empty() ? "" : " ") + to_string(layer.kind);
  return text;
}

}  // namespace stepcast
