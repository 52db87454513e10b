#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/network/model.hpp"
#include "models/pytorch_profile/profile.hpp"
#include "read_text.hpp"
#include "tests/models/pytorch_profile/made_up_profile.hpp"

using namespace stepcast;

using Catch::Matchers::Contains;

namespace {

constexpr int kStep = 10'000;  // us

/// An operator of the forward pass with its node of the backward pass.
struct Op {
  std::string name, node;
  std::string shapes;                   ///< of its inputs
  std::string output;                   ///< shape of its output
  std::vector<std::string> parameters;  ///< shapes, in the order in which gradients are added
  bool sum = false;                     ///< its input has other readers, whose gradients were there before
};

/// One training step. Each operator takes 5 us forward and 7 us backward, a sum of gradients 1 us.
void add_step(Events& events, int number, const std::vector<Op>& ops, bool shapes) {
  const double start = kStep * number;
  const int first = 1000 * number;
  events.range("ProfilerStep#" + std::to_string(number), start, kStep - 1);
  const auto shape = [&](const std::string& text) { return shapes ? text : std::string(); };
  double at = start + 10;
  for (std::size_t i = 0; i < ops.size(); ++i, at += 20) {
    const int id = events.host(ops[i].name, at, 10, first + static_cast<int>(i), false, shape(ops[i].shapes));
    events.kernel("forward", id, at + 1, 5);
  }
  for (std::size_t i = ops.size(); i-- > 0; at += 20) {
    const Op& op = ops[i];
    events.host("autograd::engine::evaluate_function: " + op.node, at, 18, first + static_cast<int>(i), true);
    const int id = events.host(op.node, at + 1, 10, first + static_cast<int>(i), true,
                               op.output.empty() ? "" : shape("[" + op.output + "]"));
    events.kernel("backward", id, at + 2, 7);
    if (op.sum) events.kernel("sum", events.host("aten::add", at + 13, 3), at + 14, 1);
    for (const std::string& parameter : op.parameters) {
      at += 20;
      events.host("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", at, 10);
      events.host("torch::autograd::AccumulateGrad", at + 1, 8, -1, false, shape("[" + parameter + "]"));
    }
  }
}

/// A convolution network with a residual connection, a pool and an operator that nobody knows; batch 2.
std::vector<Op> residual_network() {
  return {
      {"aten::conv2d", "ConvolutionBackward0", "[[2,3,9,8],[4,3,3,3],[],[]]", "[2,4,5,4]", {"[4,3,3,3]"}},
      {"aten::batch_norm",
       "CudnnBatchNormBackward0",
       "[[2,4,5,4],[4],[4],[4],[4]]",
       "[2,4,5,4]",
       {"[4]", "[4]"}},
      {"aten::relu_", "ReluBackward0", "[[2,4,5,4]]", "[2,4,5,4]", {}},
      {"aten::conv2d",
       "ConvolutionBackward0",
       "[[2,4,5,4],[4,2,1,1],[4]]",
       "[2,4,5,4]",
       {"[4]", "[4,2,1,1]"},
       true},
      {"aten::add_", "AddBackward0", "[[2,4,5,4],[2,4,5,4],[]]", "[2,4,5,4]", {}},
      {"aten::max_pool2d", "MaxPool2DWithIndicesBackward0", "[[2,4,5,4],[],[]]", "[2,4,2,2]", {}},
      {"MyNorm", "MyNormBackward", "[[2,4,2,2],[3],[7]]", "[2,4,2,2]", {"[3]", "[7]"}},
      {"aten::linear", "AddmmBackward0", "[[2,16],[10,16],[10]]", "[2,10]", {"[10]", "[10,16]"}},
      {"aten::cross_entropy_loss", "NllLossBackward0", "[[2,10],[2],[]]", "[]", {}},
  };
}

struct Imported {
  ProfileNetwork network;
  Trace trace;
};

Imported imported(const std::vector<Op>& ops, bool shapes, const std::vector<std::int64_t>& parameters = {}) {
  Events events;
  for (int number = 1; number <= 2; ++number) add_step(events, number, ops, shapes);
  const ProfileFile file(events.text());
  const Profile profile = read_profile(file.name());
  const Attribution all = attribute(profile);
  ProfileNetwork network = profile_network("p", all.steps.front().operators, 2, "net", parameters);
  Trace trace = profile_trace(profile, all, {network.model, network.match}, 2);
  return {std::move(network), std::move(trace)};
}

std::string kinds(const Model& model) {
  std::string text;
  for (const Layer& layer : model.layers)
    text += std::string(text.empty() ? "" : " ") + to_string(layer.kind);
  return text;
}

std::vector<std::string> inputs(const Model& model, std::size_t layer) {
  std::vector<std::string> names;
  for (const int input : model.layers.at(layer).inputs)
    names.push_back(input < 0 ? "input" : model.layers[input].name);
  return names;
}

}  // namespace

TEST_CASE("shapes of a profile give the network: kinds, parameters, outputs and what reads what",
          "[models]") {
  const auto [network, trace] = imported(residual_network(), true);
  const Model& model = network.model;
  CHECK(kinds(model) ==
        "convolution batch_norm relu convolution add measured measured reshape dense softmax_cross_entropy");
  CHECK(network.measured == 2);
  CHECK(model.input == Shape{3, 9, 8});
  CHECK(model.layers[0].groups == 1);
  CHECK(model.layers[3].groups == 2);
  CHECK(model.layers[0].output == Shape{4, 5, 4});
  CHECK(model.layers[0].window.stride == std::vector<std::int64_t>{2, 2});
  CHECK(model.layers[5].output == Shape{4, 2, 2});
  CHECK(trainable_parameters(model) == 108 + 8 + 12 + 10 + 170);
  CHECK(inputs(model, 4) == std::vector<std::string>{"conv2d_2", "relu"});
  CHECK(inputs(model, 6) == std::vector<std::string>{"max_pool2d"});
  CHECK(model.layers[6].name == "MyNorm");
  REQUIRE(model.layers[6].parameters.size() == 2);
  CHECK(model.layers[6].parameters.back().elements() == 3);
}

TEST_CASE("the trace of a network from a profile has all of the profile's time", "[models]") {
  for (const bool shapes : {true, false}) {
    const std::vector<std::int64_t> sizes{108, 4, 4, 8, 4, 7, 3, 160, 10};
    const auto [network, trace] =
        imported(residual_network(), shapes, shapes ? std::vector<std::int64_t>{} : sizes);
    check_fits(trace, network.model);
    CHECK(step_time(trace).value == Approx((9 * 12 + 1) * 1e-6));
    CHECK(trainable_parameters(network.model) == 308);
  }
}

TEST_CASE("without shapes all layers are measured, and parameters come from a list", "[models]") {
  const std::vector<Op> ops = residual_network();
  const auto [network, trace] = imported(ops, false, {108, 4, 4, 8, 4, 7, 3, 160, 10});
  CHECK(network.measured == std::ssize(ops));
  CHECK(network.model.layers[3].parameters.front().elements() == 8);
  CHECK_THROWS_WITH(imported(ops, false),
                    Contains("--parameters: p holds no shapes") && Contains("9 parameters"));
  CHECK_THROWS_WITH(imported(ops, false, {1, 2}), Contains("expected 9 numbers") && Contains("got 2"));
  CHECK_THROWS_WITH(imported(ops, true, {108, 4, 4, 8, 4, 7, 3, 160, 11}),
                    Contains("expected 308 elements") && Contains("got 309"));
}

TEST_CASE("an operator whose parameters are not those of its kind is measured", "[models]") {
  std::vector<Op> ops = residual_network();
  ops[0].parameters.clear();  // frozen
  ops[7].parameters = {"[10]"};
  const auto [network, trace] = imported(ops, true);
  CHECK(network.model.layers[0].kind == LayerKind::measured);
  CHECK(network.model.layers[0].output == Shape{4, 5, 4});
  CHECK(network.model.layers[7].kind == LayerKind::measured);
  CHECK(trainable_parameters(network.model) == 308 - 108 - 160);
}

TEST_CASE("a step of too many operators is refused before its network is looked for", "[models]") {
  const std::vector<NetworkOperator> many(20'001,
                                          {.name = "aten::relu", .kind = "relu", .shapes = {}, .times = {}});
  CHECK_THROWS_WITH(profile_network("p", many, 2, "net", {}),
                    Contains("more than 20000 operators in a step"));
}

TEST_CASE("branches that nothing has read are read by the next operator of several inputs", "[models]") {
  const std::vector<Op> ops{
      {"aten::linear", "AddmmBackward0", "[[2,8],[8,8]]", "[2,8]", {"[8,8]"}},
      {"aten::linear", "AddmmBackward0", "[[2,8],[5,8]]", "[2,5]", {"[5,8]"}, true},
      {"aten::linear", "AddmmBackward0", "[[2,8],[6,8]]", "[2,6]", {"[6,8]"}},
      {"aten::cat", "CatBackward0", "", "[2,11]", {}},
      {"aten::linear", "AddmmBackward0", "[[2,11],[1,11]]", "[2,1]", {"[1,11]"}},
      {"aten::mul", "MulBackward0", "[[2,1],[2,1]]", "[2,1]", {}},
  };
  const auto [network, trace] = imported(ops, true);
  CHECK(inputs(network.model, 2) == std::vector<std::string>{"linear"});
  CHECK(inputs(network.model, 3) == std::vector<std::string>{"linear_3", "linear_2"});
  CHECK(network.model.layers.back().kind == LayerKind::measured);
}

using Catch::Matchers::Contains;

namespace {

std::vector<NetworkOperator> operators(const std::vector<std::pair<const char*, const char*>>& named) {
  std::vector<NetworkOperator> all;
  for (const auto& [name, kind] : named) {
    NetworkOperator& one = all.emplace_back();
    one.name = name;
    one.kind = kind;
  }
  return all;
}

LayerMatch match(const std::vector<NetworkOperator>& all, const char* input, const char* layers,
                 std::int64_t batch = 0) {
  const YamlNode node =
      parse_yaml(fmt::format("{{name: m, source: s, input: {}, layers: [{}, {{name: out, kind: dense, units: "
                             "4}}, {{name: l, kind: mean_squared_error}}]}}",
                             input, layers),
                 "m.yaml");
  return match_layers("p", all, read_model(YamlValue(node, "")), batch);
}

}  // namespace

TEST_CASE("operators of BERT's positions and of a vision transformer's class token find their layers",
          "[models]") {
  const LayerMatch bert = match(operators({{"aten::embedding", "embedding"},
                                           {"aten::embedding", "embedding"},
                                           {"aten::add", "add"},
                                           {"aten::linear", "dense"},
                                           {"aten::mse_loss", "mean_squared_error"}}),
                                "[6]",
                                "{name: words, kind: embedding, rows: 9, columns: 8}, "
                                "{name: positions, kind: position_embedding, rows: 6}");
  CHECK(bert[1] == std::vector<int>{1, 2});
  const LayerMatch vision = match(operators({{"aten::expand", "view"},
                                             {"aten::cat", "other"},
                                             {"aten::add", "add"},
                                             {"aten::linear", "dense"},
                                             {"aten::mse_loss", "mean_squared_error"}}),
                                  "[6, 8]",
                                  "{name: class, kind: class_token}, {name: positions, kind: "
                                  "position_embedding, rows: 7}, {name: first, kind: first_token}");
  CHECK(vision[0] == std::vector<int>{0, 1});
  CHECK(vision[1] == std::vector<int>{2});
  CHECK(vision[2].empty());
}

TEST_CASE("one dense operator or several may compute queries, keys and values", "[models]") {
  const char* layers = "{name: qkv, kind: dense, units: 24}, {name: attention, kind: attention, heads: 2}";
  const auto projected = [](int projections) {
    std::vector<std::pair<const char*, const char*>> named;
    for (int i = 0; i < projections; ++i) {
      named.insert(named.end(), {{"aten::linear", "dense"}, {"aten::view", "view"}});
    }
    named.insert(named.end(), {{"aten::scaled_dot_product_attention", "attention"},
                               {"aten::linear", "dense"},
                               {"aten::mse_loss", "mean_squared_error"}});
    return operators(named);
  };
  CHECK(match(projected(1), "[6, 8]", layers)[0] == std::vector<int>{0});
  CHECK(match(projected(3), "[6, 8]", layers)[0] == std::vector<int>{0, 1, 2, 3, 4});
  // Where shapes are known, the operators' weights must have all rows of the layer.
  const auto with_rows = [&](std::int64_t rows) {
    std::vector<NetworkOperator> all = projected(3);
    for (const std::size_t i : {0U, 2U, 4U}) all[i].shapes = {{5, 6, 8}, {rows, 8}, {rows}};
    all[7].shapes = {{5, 6, 8}, {4, 8}, {4}};
    return all;
  };
  CHECK(match(with_rows(8), "[6, 8]", layers, 5)[0].size() == 5);
  CHECK_THROWS_WITH(match(with_rows(9), "[6, 8]", layers, 5), Contains("expected layer qkv (dense)"));
}
