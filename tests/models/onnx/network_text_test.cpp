#include "models/onnx/network_text.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/network/model.hpp"
#include "onnx/built_graph.hpp"
#include "read_text.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

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

/// A word's characters through a GRU of two directions and an LSTM, as PyTorch exports batch_first=True.
Graph recurrent() {
  Graph graph({6, 3});
  set(graph.node("Transpose", {"x"}, "by_time"), "perm", {1, 0, 2});
  for (const auto& [name, sizes] : std::vector<std::pair<std::string, Shape>>{{"w1", {2, 15, 3}},
                                                                              {"r1", {2, 15, 5}},
                                                                              {"b1", {2, 30}},
                                                                              {"w2", {1, 16, 10}},
                                                                              {"r2", {1, 16, 4}},
                                                                              {"b2", {1, 32}},
                                                                              {"w3", {2, 4}}})
    graph.weight(name, sizes);
  auto& gru = graph.node("GRU", {"by_time", "w1", "r1", "b1"}, "y1");
  set_integer(gru, "hidden_size", 5);
  auto* direction = gru.add_attribute();
  direction->set_name("direction");
  direction->set_type(onnx::AttributeProto::STRING);
  direction->set_s("bidirectional");
  set(graph.node("Transpose", {"y1"}, "turned"), "perm", {0, 2, 1, 3});
  auto& sizes = graph.weight("sizes", {3});
  sizes.set_data_type(onnx::TensorProto::INT64);
  for (const int size : {0, 0, -1}) sizes.add_int64_data(size);
  graph.node("Reshape", {"turned", "sizes"}, "both");
  set_integer(graph.node("LSTM", {"both", "w2", "r2", "b2"}, "y2"), "hidden_size", 4);
  auto& axes = graph.weight("axes", {1});
  axes.set_data_type(onnx::TensorProto::INT64);
  axes.add_int64_data(1);
  graph.node("Squeeze", {"y2", "axes"}, "squeezed");
  set(graph.node("Transpose", {"squeezed"}, "by_sample"), "perm", {1, 0, 2});
  auto& last = graph.weight("last", {});
  last.set_data_type(onnx::TensorProto::INT64);
  last.add_int64_data(-1);
  set_integer(graph.node("Gather", {"by_sample", "last"}, "state"), "axis", 1);
  set_integer(graph.node("Gemm", {"state", "w3"}, "y"), "transB", 1);
  return graph;
}

/// Attention of 2 heads with a causal mask over 4 tokens of 6 features, written out.
/// @param joined  queries, keys and values are thirds of one product
Graph attention(bool joined) {
  Graph graph({4, 6});
  add_numbers(graph, "split", {0, 4, 2, 3});
  add_numbers(graph, "join", {0, 4, 6});
  if (joined) {
    graph.weight("w", {6, 18});
    graph.node("MatMul", {"x", "w"}, "qkv");
    auto& split = graph.node("Split", {"qkv"}, "q");
    split.add_output("k");
    split.add_output("v");
    set_integer(split, "axis", -1);
  }
  for (const std::string part : {"q", "k", "v"}) {
    if (!joined) {
      graph.weight("w" + part, {6, 6});
      graph.weight("b" + part, {6});
      graph.node("MatMul", {"x", "w" + part}, part + "_product");
      graph.node("Add", {part + "_product", "b" + part}, part);
    }
    graph.node("Reshape", {part, "split"}, part + "_split");
    const Shape turn = part == "k" ? Shape{0, 2, 3, 1} : Shape{0, 2, 1, 3};
    set(graph.node("Transpose", {part + "_split"}, part + "_heads"), "perm", turn);
  }
  graph.weight("scale", {});
  auto& mask = graph.weight("mask", {1, 1, 4, 4});
  mask.set_data_type(onnx::TensorProto::BOOL);
  std::string rows;
  for (int i = 0; i < 16; ++i) rows += static_cast<char>(i % 4 <= i / 4);
  mask.set_raw_data(rows);
  graph.weight("least", {});
  graph.node("MatMul", {"q_heads", "k_heads"}, "scores");
  graph.node("Div", {"scores", "scale"}, "scaled");
  graph.node("Where", {"mask", "scaled", "least"}, "masked");
  set_integer(graph.node("Softmax", {"masked"}, "shares"), "axis", -1);
  graph.node("MatMul", {"shares", "v_heads"}, "heads");
  set(graph.node("Transpose", {"heads"}, "tokens"), "perm", {0, 2, 1, 3});
  graph.node("Reshape", {"tokens", "join"}, "joined");
  graph.node("Add", {"joined", "x"}, "y");
  return graph;
}

/// Layer norm and GELU as operators without a name of their own.
Graph written_out() {
  Graph graph({4, 6});
  for (const char* name : {"two", "tiny", "root", "one", "half"}) graph.weight(name, {});
  for (const char* name : {"scale", "shift"}) graph.weight(name, {6});
  set(graph.node("ReduceMean", {"x"}, "mean"), "axes", {-1});
  graph.node("Sub", {"x", "mean"}, "centered");
  graph.node("Pow", {"centered", "two"}, "square");
  set(graph.node("ReduceMean", {"square"}, "variance"), "axes", {-1});
  graph.node("Add", {"variance", "tiny"}, "above");
  graph.node("Sqrt", {"above"}, "deviation");
  graph.node("Div", {"centered", "deviation"}, "normal");
  graph.node("Mul", {"normal", "scale"}, "scaled");
  graph.node("Add", {"scaled", "shift"}, "norm");
  graph.node("Div", {"norm", "root"}, "part");
  graph.node("Erf", {"part"}, "bent");
  graph.node("Add", {"bent", "one"}, "above_one");
  graph.node("Mul", {"norm", "above_one"}, "curve");
  graph.node("Mul", {"curve", "half"}, "y");
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

TEST_CASE("recurrent layers of ONNX: two directions, all steps or the last one", "[models]") {
  const Model model = model_of(text(recurrent().bytes("y")));
  CHECK(kinds(model) == "gru lstm dense softmax_cross_entropy");
  CHECK(model.layers[0].bidirectional);
  CHECK(model.layers[0].output == Shape{6, 10});
  CHECK(model.layers[1].output == Shape{4});
  // ONNX has two biases a gate, stepcast one.
  CHECK(trainable_parameters(model) == 2 * 15 * (3 + 5 + 1) + 16 * (10 + 4 + 1) + 2 * 4);
  Graph states = recurrent();
  auto* lstm = states.model.mutable_graph()->mutable_node(4);
  lstm->add_input("");
  lstm->add_input("both");
  CHECK_THROWS_WITH(text(states.bytes("y")), Contains("initial states depend on the network's input"));
}

TEST_CASE("attention that ONNX writes out is one layer behind one product", "[models]") {
  for (const bool joined : {true, false}) {
    CAPTURE(joined);
    const Model model = model_of(text(attention(joined).bytes("y")));
    CHECK(kinds(model) == "dense attention add softmax_cross_entropy");
    CHECK(model.layers[0].output == Shape{4, 18});
    CHECK(model.layers[1].heads == 2);
    CHECK(model.layers[1].causal);
    CHECK(trainable_parameters(model) == 6 * 18 + (joined ? 0 : 18));
  }
  Graph shared = attention(false);
  shared.node("Relu", {"k"}, "z");
  auto* output = shared.model.mutable_graph()->add_output();
  output->set_name("z");
  output->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  CHECK_THROWS_WITH(text(shared.bytes("y")), Contains("reads keys or values of an attention"));
  Graph crossed = attention(false);
  crossed.model.mutable_graph()->mutable_node(4)->set_input(0, "q");  // keys of the queries
  CHECK_THROWS_WITH(text(crossed.bytes("y")), Contains("dense layers of one input"));
}

TEST_CASE("convolutions of ONNX graphs keep their groups", "[models]") {
  Graph graph({4, 6, 6});
  graph.weight("w1", {8, 2, 3, 3});
  graph.weight("w2", {8, 1, 3, 3});
  set_integer(graph.node("Conv", {"x", "w1"}, "c1"), "group", 2);
  set_integer(graph.node("Conv", {"c1", "w2"}, "y"), "group", 8);
  const Model model = model_of(text(graph.bytes("y")));
  CHECK(model.layers[0].groups == 2);
  CHECK(model.layers[1].groups == 8);
  CHECK(trainable_parameters(model) == 8 * 2 * 9 + 8 * 9);
}

TEST_CASE("layer norm and GELU that ONNX writes out are one layer each", "[models]") {
  const Model model = model_of(text(written_out().bytes("y")));
  CHECK(kinds(model) == "layer_norm gelu softmax_cross_entropy");
  CHECK(trainable_parameters(model) == 12);
  Graph bare = written_out();
  bare.model.mutable_graph()->mutable_node(7)->set_op_type("Add");  // a shift in place of the scale
  CHECK_THROWS_AS(text(bare.bytes("y")), InputError);
}

TEST_CASE("networks from ONNX refuse nodes without a layer by name and operator", "[models]") {
  Graph unknown = mlp();
  unknown.node("Sinh", {"y"}, "z");
  CHECK_THROWS_WITH(text(unknown.bytes("z")),
                    "net.onnx: node z_node (Sinh): has no kind of layer in stepcast");
  Graph grouped = residual();
  set_integer(*grouped.model.mutable_graph()->mutable_node(0), "group", 3);
  CHECK_THROWS_WITH(text(grouped.bytes("y")),
                    Contains("node c1_node (Conv)") && Contains("number of groups"));
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
  CHECK_THROWS_WITH(text("random \x01\x02 bytes"), Contains("is not a complete ONNX file"));
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
  CHECK_THROWS_WITH(text(deep.bytes("y")), Contains("is not a complete ONNX file"));
}

TEST_CASE("any changed byte of an ONNX file is read or refused in one line", "[models]") {
  const auto graph = GENERATE(0, 1, 2, 3, 4);
  const std::string whole =
      std::vector<Graph>{residual(), recurrent(), attention(true), attention(false), written_out()}[graph]
          .bytes("y");
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

TEST_CASE("biases may be nodes of their own, with sizes of 1, or have one element", "[models]") {
  Graph graph({3, 8, 8});
  graph.weight("w1", {4, 3, 3, 3});
  graph.weight("b1", {4, 1, 1});
  graph.weight("w2", {144, 5});
  graph.weight("b2", {1, 5});
  graph.weight("w3", {5, 1});
  graph.weight("b3", {1});
  graph.node("Conv", {"x", "w1"}, "c");
  graph.node("Add", {"c", "b1"}, "c_biased");
  graph.node("Flatten", {"c_biased"}, "flat");
  graph.node("Gemm", {"flat", "w2", "b2"}, "d");
  graph.node("MatMul", {"d", "w3"}, "product");
  graph.node("Add", {"product", "b3"}, "y");
  const Model model = model_of(text(graph.bytes("y")));
  CHECK(kinds(model) == "convolution reshape dense dense softmax_cross_entropy");
  CHECK(trainable_parameters(model) == 4 * 27 + 4 + 144 * 5 + 5 + 5 + 1);

  Graph wrong({3, 8, 8});
  wrong.weight("w1", {4, 3, 3, 3});
  wrong.weight("b1", {4});  // broadcasts along the last size, not along channels
  wrong.node("Conv", {"x", "w1"}, "c");
  wrong.node("Add", {"c", "b1"}, "y");
  CHECK_THROWS_WITH(text(wrong.bytes("y")),
                    Contains("expected a bias of 4 elements, one for each unit, got 4"));
}

namespace {

/// An embedding of words and, with a second input, of their types, before a dense layer.
Graph words(const std::string& second) {
  Graph graph({8});
  auto* inputs = graph.model.mutable_graph()->mutable_input();
  inputs->Mutable(0)->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::INT64);
  inputs->Mutable(0)->mutable_type()->mutable_tensor_type()->mutable_shape()->mutable_dim(1)->set_dim_param(
      "length");
  *inputs->Add() = inputs->Get(0);
  inputs->Mutable(1)->set_name(second);
  graph.weight("table", {100, 4});
  graph.weight("types", {2, 4});
  graph.weight("w", {4, 5});
  graph.node("Gather", {"table", "x"}, "tokens");
  if (second == "token_type_ids") {
    graph.node("Gather", {"types", second}, "kinds");
    graph.node("Add", {"tokens", "kinds"}, "sum");
  }
  graph.node("MatMul", {second == "token_type_ids" ? "sum" : "tokens", "w"}, "y");
  return graph;
}

std::string sized_text(const Graph& graph, const std::map<std::string, std::int64_t>& sizes) {
  std::istringstream stream(graph.bytes("y"));
  return onnx_network_text(stream, "net.onnx", "my-net", sizes);
}

}  // namespace

TEST_CASE("further inputs of ONNX are masks, or integers of the same shape", "[models]") {
  const Model types = model_of(sized_text(words("token_type_ids"), {{"length", 8}}));
  CHECK(kinds(types) == "embedding embedding add dense softmax_cross_entropy");
  CHECK_THAT(types.source, Contains("inputs token_type_ids are counted as the same integers as x"));
  const Model mask = model_of(sized_text(words("attention_mask"), {{"x:1", 8}, {"attention_mask:1", 8}}));
  CHECK(kinds(mask) == "embedding dense softmax_cross_entropy");
  CHECK_THAT(mask.source, Contains("masks attention_mask are taken as fixed"));
  Graph other = words("other");
  auto* input = other.model.mutable_graph()->mutable_input(1);
  input->mutable_type()->mutable_tensor_type()->set_elem_type(onnx::TensorProto::FLOAT);
  CHECK_THROWS_WITH(sized_text(other, {{"length", 8}}),
                    Contains("input other: expected one input besides initializers"));
}

TEST_CASE("free sizes of ONNX are given by name, and quantized graphs refused by name", "[models][errors]") {
  CHECK(model_of(sized_text(words("attention_mask"), {{"length", 16}})).input == Shape{16});
  CHECK_THROWS_WITH(sized_text(words("attention_mask"), {}),
                    "net.onnx: input x: size 1 is not fixed; give --size length=N");
  CHECK_THROWS_WITH(sized_text(words("attention_mask"), {{"length", 8}, {"width", 8}}),
                    "net.onnx: --size width: no input has a free size of this name");
  Graph quantized({3, 8, 8});
  quantized.node("DequantizeLinear", {"x"}, "y");
  CHECK_THROWS_WITH(
      text(quantized.bytes("y")),
      "net.onnx: node y_node (DequantizeLinear): belongs to a quantized network; export the network in "
      "floating point");
}

// The form of CNTK's exports: the weights of the last layer are an initializer that the graph reshapes, and
// initializers are listed among the inputs.
TEST_CASE("a pool of ONNX that rounds up reads beyond its input", "[models][onnx]") {
  Graph graph({3, 32, 32});
  onnx::NodeProto& pool = graph.node("MaxPool", {"x"}, "p");
  set(pool, "kernel_shape", {3, 3});
  set(pool, "strides", {2, 2});
  set_integer(pool, "ceil_mode", 1);
  graph.weight("w", {10, 3 * 16 * 16});
  graph.node("Flatten", {"p"}, "f");
  set_integer(graph.node("Gemm", {"f", "w"}, "y"), "transB", 1);
  CHECK_THAT(text(graph.bytes("y")), Catch::Matchers::Contains("pad: {before: [0, 0], after: [1, 1]}"));
}

TEST_CASE("nodes that count as another kind are named, and weights must fit what they say",
          "[models][onnx][errors]") {
  const auto convolution = [](const Shape& kernel, int type) {
    Graph graph({3, 8, 8});
    graph.weight("w", {4, 3, 3, 3}).set_data_type(type);
    set(graph.node("Conv", {"x", "w"}, "c"), "kernel_shape", kernel);
    graph.node("HardSwish", {"c"}, "y");
    return graph.bytes("y");
  };
  CHECK_THAT(text(convolution({3, 3}, onnx::TensorProto::FLOAT16)),
             Catch::Matchers::Contains("nodes counted as others: HardSwish as silu"));
  CHECK_THROWS_WITH(text(convolution({5, 5}, onnx::TensorProto::FLOAT)),
                    Catch::Matchers::Contains("(Conv): its kernel_shape is not that of its filters"));
  CHECK_THROWS_WITH(text(convolution({3, 3}, onnx::TensorProto::INT8)),
                    Catch::Matchers::Contains("expected an initializer in floating point as input 1"));
}

TEST_CASE("a reshaped initializer is an initializer of the new shape", "[models][onnx]") {
  Graph graph({8, 4, 4});
  graph.weight("w", {8, 4, 4, 10});
  Graph::value(*graph.model.mutable_graph()->add_input(), "w", {});
  auto& rows = graph.weight("rows", {2});
  auto& flat = graph.weight("flat", {2});
  for (auto* shape : {&rows, &flat}) shape->set_data_type(onnx::TensorProto::INT64);
  for (const std::int64_t size : {128, 10}) rows.add_int64_data(size);
  for (const std::int64_t size : {-1, 128}) flat.add_int64_data(size);
  graph.node("Reshape", {"w", "rows"}, "matrix");
  graph.node("Reshape", {"x", "flat"}, "row");
  graph.node("MatMul", {"row", "matrix"}, "y");
  const Model model = model_of(text(graph.bytes("y")));
  CHECK(trainable_parameters(model) == 1280);
  CHECK(layer_named(model, "y_node").output == Shape{10});
  rows.set_int64_data(0, 64);  // not as many elements
  CHECK_THROWS_AS(text(graph.bytes("y")), InputError);
}

TEST_CASE("arithmetic on the input by numbers of channels is no layer, and is named", "[models][onnx]") {
  Graph graph({3, 8, 8});
  graph.weight("scale", {1});
  graph.weight("mean", {3, 1, 1});
  graph.weight("w", {4, 3, 1, 1});
  graph.node("Mul", {"x", "scale"}, "scaled");
  graph.node("Sub", {"scaled", "mean"}, "centred");
  graph.node("Conv", {"centred", "w"}, "y");
  const std::string written = text(graph.bytes("y"));
  CHECK(trainable_parameters(model_of(written)) == 12);
  CHECK_THAT(written,
             Catch::Matchers::Contains("arithmetic on the input (scaled_node, centred_node) is left out"));
  // A number for each element is no such thing.
  graph.model.mutable_graph()->mutable_initializer(1)->set_dims(1, 8);
  CHECK_THROWS_WITH(text(graph.bytes("y")), Catch::Matchers::Contains("centred_node (Sub)"));
}
