#include "models/onnx/network_text.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/network/model.hpp"
#include "models/onnx/graph.hpp"
#include "read_text.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

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

void set(onnx::NodeProto& node, const std::string& name, const Shape& values) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INTS);
  for (const std::int64_t value : values) attribute->add_ints(value);
}

void set_integer(onnx::NodeProto& node, const std::string& name, std::int64_t value) {
  auto* attribute = node.add_attribute();
  attribute->set_name(name);
  attribute->set_type(onnx::AttributeProto::INT);
  attribute->set_i(value);
}

std::string text(const std::string& bytes) {
  std::istringstream stream(bytes);
  return onnx_network_text(stream, "net.onnx", "my-net");
}

Graph mlp() {
  Graph graph({8});
  graph.weight("w1", {8, 16});
  graph.weight("b1", {16});
  graph.weight("w2", {4, 16});
  graph.weight("b2", {4});
  graph.node("MatMul", {"x", "w1"}, "product");
  graph.node("Add", {"b1", "product"}, "biased");
  graph.node("Tanh", {"biased"}, "hidden");
  set_integer(graph.node("Gemm", {"hidden", "w2", "b2"}, "logits"), "transB", 1);
  graph.node("Softmax", {"logits"}, "y");
  return graph;
}

Graph residual() {
  Graph graph({3, 8, 8});
  graph.weight("w1", {4, 3, 3, 3});
  for (const char* name : {"scale", "shift", "mean", "variance"}) graph.weight(name, {4});
  graph.weight("w2", {4, 4, 3, 3});
  graph.weight("b2", {4});
  graph.weight("w3", {8, 10});
  set(graph.node("Conv", {"x", "w1"}, "c1"), "pads", {1, 1, 1, 1});
  graph.node("BatchNormalization", {"c1", "scale", "shift", "mean", "variance"}, "n1");
  graph.node("Relu", {"n1"}, "r1");
  set(graph.node("Conv", {"r1", "w2", "b2"}, "c2"), "pads", {1, 1, 1, 1});
  graph.node("Add", {"c2", "r1"}, "sum");
  set_integer(graph.node("Concat", {"sum", "r1"}, "both"), "axis", 1);
  auto& pool = graph.node("MaxPool", {"both"}, "pooled");
  set(pool, "kernel_shape", {2, 2});
  set(pool, "strides", {2, 2});
  graph.node("Identity", {"pooled"}, "same");
  graph.node("GlobalAveragePool", {"same"}, "averages");
  graph.node("Flatten", {"averages"}, "flat");
  graph.node("Gemm", {"flat", "w3"}, "y");
  return graph;
}

}  // namespace

TEST_CASE("networks from ONNX have the parameters of the graph's initializers", "[models]") {
  const Model dense = model_of(text(mlp().bytes("y")));
  CHECK(trainable_parameters(dense) == 8 * 16 + 16 + 16 * 4 + 4);
  CHECK(dense.layers.size() == 4);
  CHECK(dense.layers.back().kind == LayerKind::softmax_cross_entropy);
  const Model convolutional = model_of(text(residual().bytes("y")));
  CHECK(trainable_parameters(convolutional) == 4 * 27 + 8 + 4 * 36 + 4 + 80);
  CHECK(all_parameters(convolutional) == trainable_parameters(convolutional) + 8);
  CHECK(convolutional.layers[4].kind == LayerKind::add);
  CHECK(convolutional.layers[4].inputs == std::vector<int>{3, 2});
  CHECK(convolutional.layers[6].output == Shape{8, 4, 4});
}

TEST_CASE("networks from ONNX refuse nodes without a layer by name and operator", "[models]") {
  Graph unknown = mlp();
  unknown.node("Erf", {"y"}, "z");
  CHECK_THROWS_WITH(text(unknown.bytes("z")),
                    "net.onnx: node z_node (Erf): has no kind of layer in stepcast");
  Graph grouped = residual();
  set_integer(*grouped.model.mutable_graph()->mutable_node(0), "group", 3);
  CHECK_THROWS_WITH(text(grouped.bytes("y")), Contains("node c1_node (Conv)") && Contains("groups"));
  Graph inner = mlp();
  inner.node("Relu", {"y"}, "z");
  CHECK_THROWS_WITH(text(inner.bytes("z")), Contains("node y_node (Softmax)"));
  Graph shared = mlp();
  shared.model.mutable_graph()->mutable_node(3)->set_input(2, "b1");
  CHECK_THROWS_WITH(text(shared.bytes("y")), Contains("shares its parameters"));
  Graph wrong = mlp();
  wrong.model.mutable_graph()->mutable_initializer(0)->set_dims(0, 9);
  CHECK_THROWS_AS(text(wrong.bytes("y")), InputError);
  Graph folded = mlp();
  folded.model.mutable_graph()->mutable_node()->RemoveLast();
  auto& sizes = folded.weight("sizes", {2});
  sizes.set_data_type(onnx::TensorProto::INT64);
  sizes.add_int64_data(-1);
  sizes.add_int64_data(2);
  folded.node("Reshape", {"logits", "sizes"}, "z");
  CHECK_THROWS_WITH(text(folded.bytes("z")), Contains("first size is not the batch"));
}

TEST_CASE("networks from ONNX refuse damaged and oversized files in one line", "[models]") {
  const std::string whole = residual().bytes("y");
  for (std::size_t size = 0; size < whole.size(); ++size)
    CHECK_THROWS_AS(text(whole.substr(0, size)), InputError);
  CHECK_THROWS_WITH(text("random \x01\x02 bytes"), Contains("is no complete ONNX file"));
  Graph external = mlp();
  external.model.mutable_graph()->mutable_initializer(0)->set_data_location(onnx::TensorProto::EXTERNAL);
  CHECK_THROWS_WITH(text(external.bytes("y")), Contains("in another file"));
  Graph large = mlp();
  large.model.mutable_graph()->mutable_initializer(0)->set_dims(0, 1'000'000'000'000'000);
  CHECK_THROWS_WITH(text(large.bytes("y")), Contains("too large"));
  Graph many = mlp();
  for (int i = 0; i < 20'000; ++i) many.node("Identity", {"x"}, std::to_string(i));
  CHECK_THROWS_WITH(text(many.bytes("y")), Contains("expected at most 20000 nodes"));
  Graph deep = mlp();
  auto* type = deep.model.mutable_graph()->add_value_info()->mutable_type();
  for (int i = 0; i < 50; ++i) type = type->mutable_sequence_type()->mutable_elem_type();
  CHECK_THROWS_WITH(text(deep.bytes("y")), Contains("is no complete ONNX file"));
}

TEST_CASE("any changed byte of an ONNX file is read or refused in one line", "[models]") {
  const std::string whole = residual().bytes("y");
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int change : {1, 2, 0x80, 0xff}) {
      std::string damaged = whole;
      damaged[i] = static_cast<char>(damaged[i] ^ change);
      try {
        text(damaged);
      } catch (const InputError& error) {
        CHECK(std::string(error.what()).find('\n') == std::string::npos);
      }
    }
  }
  Graph still = residual();
  set(*still.model.mutable_graph()->mutable_node(0), "strides", {0, 0});
  CHECK_THROWS_WITH(text(still.bytes("y")), Contains("node c1_node (Conv): expected strides"));
}
