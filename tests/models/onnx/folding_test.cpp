#include <catch2/catch.hpp>
#include <functional>

#include "core/error.hpp"
#include "onnx/built_graph.hpp"
#include "read_text.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

void add_number(Graph& graph, const std::string& name, std::int64_t number) {
  auto& tensor = graph.weight(name, {});
  tensor.set_data_type(onnx::TensorProto::INT64);
  tensor.add_int64_data(number);
}

/// `x.size(AXIS)` as torch.onnx.export writes it; `name` is a list of this one number.
void add_size(Graph& graph, const std::string& of, std::int64_t axis, const std::string& name) {
  graph.node("Shape", {of}, name + "_shape");
  add_number(graph, name + "_axis", axis);
  graph.node("Gather", {name + "_shape", name + "_axis"}, name + "_size");
  graph.node("Unsqueeze", {name + "_size", "first"}, name);
}

/// A convolution and `view(x.size(0), -1)` before a dense layer.
Graph flattened() {
  Graph graph({3, 8, 8});
  add_numbers(graph, "first", {0});
  add_numbers(graph, "rest", {-1});
  graph.weight("w1", {4, 3, 3, 3});
  graph.weight("w2", {144, 5});
  graph.node("Conv", {"x", "w1"}, "c1");
  add_size(graph, "c1", 0, "samples");
  set_integer(graph.node("Concat", {"samples", "rest"}, "sizes"), "axis", 0);
  graph.node("Reshape", {"c1", "sizes"}, "flat");
  graph.node("Gemm", {"flat", "w2"}, "y");
  return graph;
}

/// The numbers that a graph's nodes compute of a list, by `operation` on top of `numbers`.
Shape folded_numbers(const std::function<void(Graph&)>& operation, const std::string& output) {
  Graph graph({6, 5, 4});
  operation(graph);
  graph.weight("w", {4, 4});
  graph.node("MatMul", {"x", "w"}, "y");
  std::istringstream bytes(graph.bytes("y"));
  const OnnxGraph read = read_onnx_graph(bytes, "net.onnx", [](const std::string&) { return true; });
  const auto found = read.numbers.find(output);
  return found == read.numbers.end() ? Shape{} : found->second.values;
}

}  // namespace

TEST_CASE("an ONNX graph whose shapes are computed of its input's is read", "[models]") {
  const Model model = model_of(text(flattened().bytes("y")));
  CHECK(kinds(model) == "convolution reshape dense softmax_cross_entropy");
  CHECK(model.layers[1].output == Shape{144});
  CHECK(trainable_parameters(model) == 4 * 27 + 144 * 5);
}

TEST_CASE("a shape of ONNX that depends on the network's values is refused in one line", "[models]") {
  Graph graph = flattened();
  graph.node("Cast", {"x"}, "as_sizes");  // values, not sizes
  for (auto& node : *graph.model.mutable_graph()->mutable_node())
    if (node.op_type() == "Reshape") node.set_input(1, "as_sizes");
  CHECK_THROWS_WITH(text(graph.bytes("y")), Contains("node y_node (Gemm)") && Contains("infers no shape"));
}

TEST_CASE("ONNX nodes on sizes are folded as ONNX defines them", "[models]") {
  const auto shape = [](Graph& graph) { graph.node("Shape", {"x"}, "shape"); };
  CHECK(folded_numbers(shape, "shape") == Shape{7919, 6, 5, 4});  // the batch is free
  const auto slice = [&](Graph& graph) {
    shape(graph);
    add_numbers(graph, "from", {-3});
    add_numbers(graph, "to", {INT64_MAX});
    add_numbers(graph, "axis", {0});
    add_numbers(graph, "step", {2});
    graph.node("Slice", {"shape", "from", "to", "axis", "step"}, "part");
  };
  CHECK(folded_numbers(slice, "part") == Shape{6, 4});
  const auto product = [&](Graph& graph) {
    slice(graph);
    graph.node("ReduceProd", {"part"}, "product");
    add_number(graph, "two", -7);
    graph.node("Div", {"product", "two"}, "quotient");
  };
  CHECK(folded_numbers(product, "product") == Shape{24});
  CHECK(folded_numbers(product, "quotient") == Shape{-3});
}

TEST_CASE("sizes of ONNX nodes that are not known stay unknown", "[models]") {
  const auto add = [](Graph& graph, const char* type, const Shape& a, const Shape& b) {
    add_numbers(graph, "a", a);
    add_numbers(graph, "b", b);
    graph.node(type, {"a", "b"}, "c");
  };
  const auto result = [&](const char* type, const Shape& a, const Shape& b) {
    return folded_numbers([&](Graph& graph) { add(graph, type, a, b); }, "c");
  };
  CHECK(result("Mul", {3, 4}, {5}) == Shape{15, 20});
  CHECK(result("Sub", {3}, {5, 1}) == Shape{-2, 2});
  CHECK(result("Equal", {3, 5}, {3, 4}) == Shape{1, 0});
  CHECK(result("Add", {1, 2, 3}, {1, 2}).empty());
  CHECK(result("Div", {1}, {0}).empty());
  CHECK(result("Mul", {1'000'000'000}, {1'000'000'000}).empty());
  CHECK(result("Add", {INT64_MAX}, {1}).empty());
  CHECK(result("Gather", {1, 2}, {2}).empty());
  CHECK(result("Gather", {1, 2}, {-2}) == Shape{1});
  CHECK(result("Concat", Shape(40, 1), Shape(40, 1)).empty());
  CHECK(result("Reshape", {1, 2}, {-1}) == Shape{1, 2});
  CHECK(result("Reshape", {1, 2}, {3}).empty());
}
