#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/network/layer.hpp"
#include "read_text.hpp"

using namespace stepcast;

TEST_CASE("resnet50 has the published parameters and gradient tensors", "[models]") {
  const Model model = shipped_model("resnet50");
  CHECK(trainable_parameters(model) == 25'557'032);
  CHECK(gradient_tensors(model) == 161);
  CHECK(all_parameters(model) ==
        25'557'032 + 53'120);  // a running mean and variance for each scale and shift
  CHECK(layer_named(model, "res2a_add").inputs.size() == 2);
  CHECK(layer_named(model, "pool5").output == Shape{2048, 1, 1});
}

TEST_CASE("a window shrinks an input by kernel, stride and padding", "[models]") {
  struct Case {
    std::string keys;
    Shape output;
  };
  const auto given = GENERATE(values<Case>({
      {"kernel: 3", {4, 5, 8}},
      {"kernel: 3, pad: 1", {4, 7, 10}},
      {"kernel: 3, stride: 2, pad: 1", {4, 4, 5}},
      {"kernel: [2, 4], stride: [1, 3]", {4, 6, 3}},
      {"kernel: [6, 8], pad: same", {4, 7, 10}},
      {"kernel: 3, stride: 2, pad: same", {4, 4, 5}},
      {"kernel: 3, pad: {before: [0, 2], after: [1, 0]}", {4, 6, 10}},
  }));
  const Model model = model_of(
      "{name: m, source: s, input: [2, 7, 10], layers: [{name: c, kind: convolution, "
      "filters: 4, " +
      given.keys + "}, {name: loss, kind: mean_squared_error}]}");
  CHECK(model.layers[0].output == given.output);
  CHECK(window_output(4, model.layers[0].input, model.layers[0].window) == given.output);
}

TEST_CASE("same padding puts the odd element at the end", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [1, 7, 7], layers: [{name: c, kind: convolution, "
      "filters: 1, kernel: 4, pad: same}, {name: l, kind: mean_squared_error}]}");
  CHECK(model.layers[0].window.pad_before == std::vector<std::int64_t>{1, 1});
  CHECK(model.layers[0].window.pad_after == std::vector<std::int64_t>{2, 2});
}

TEST_CASE("parameters of each kind follow their closed forms", "[models]") {
  struct Case {
    std::string input, layer;
    std::int64_t trainable, all;
  };
  const auto given = GENERATE(values<Case>({
      {"[5, 9, 9]", "kind: convolution, filters: 7, kernel: 3", 7 * 5 * 9 + 7, 7 * 5 * 9 + 7},
      {"[5, 9, 9]", "kind: convolution, filters: 7, kernel: 3, bias: false", 7 * 5 * 9, 7 * 5 * 9},
      {"[5, 9, 9, 9]", "kind: convolution, filters: 7, kernel: 3", 7 * 5 * 27 + 7, 7 * 5 * 27 + 7},
      {"[5, 9, 9]", "kind: locally_connected, filters: 7, kernel: 3", 49 * (7 * 5 * 9 + 7),
       49 * (7 * 5 * 9 + 7)},
      {"[20]", "kind: dense, units: 3", 63, 63},
      {"[11, 20]", "kind: dense, units: 3, bias: false", 60, 60},
      {"[20]", "kind: embedding, rows: 100, columns: 3", 300, 300},
      {"[5, 9, 9]", "kind: batch_norm", 10, 20},
      {"[11, 20]", "kind: layer_norm", 40, 40},
      {"[11, 20]", "kind: lstm, hidden: 6", 4 * 6 * (20 + 6 + 1), 4 * 6 * (20 + 6 + 1)},
      {"[11, 20]", "kind: lstm, hidden: 6, bidirectional: true", 8 * 6 * 27, 8 * 6 * 27},
      {"[11, 20]", "kind: gru, hidden: 6, output: last", 3 * 6 * 27, 3 * 6 * 27},
      {"[11, 24]", "kind: attention, heads: 4", 0, 0},
  }));
  CAPTURE(given.layer);
  const Model model = model_of("{name: m, source: s, input: " + given.input + ", layers: [{name: a, " +
                               given.layer + "}, {name: loss, kind: mean_squared_error}]}");
  CHECK(trainable_parameters(model) == given.trainable);
  CHECK(all_parameters(model) == given.all);
}

TEST_CASE("recurrent layers give a sequence or its last step", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [11, 20], layers: ["
      "{name: a, kind: lstm, hidden: 6, bidirectional: true},"
      "{name: b, kind: gru, hidden: 7, output: last},"
      "{name: loss, kind: mean_squared_error}]}");
  CHECK(model.layers[0].output == Shape{11, 12});
  CHECK(model.layers[1].output == Shape{7});
}

TEST_CASE("inputs default to the layer above and may name any earlier layer", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [4], layers: [{name: a, kind: relu},"
      "{name: b, kind: tanh}, {name: c, kind: add, inputs: [b, input, a]},"
      "{name: loss, kind: mean_squared_error}]}");
  CHECK(model.layers[0].inputs == std::vector<int>{-1});
  CHECK(model.layers[1].inputs == std::vector<int>{0});
  CHECK(model.layers[2].inputs == std::vector<int>{1, -1, 0});
}

namespace {

const std::string kGood =
    "name: m\n"
    "source: s\n"
    "input: [3, 8, 8]\n"
    "layers:\n"
    "  - {name: a, kind: convolution, filters: 4, kernel: 3, pad: 1}\n"
    "  - {name: b, kind: add, inputs: [a, a]}\n"
    "  - {name: flat, kind: reshape, shape: [256]}\n"
    "  - {name: loss, kind: softmax_cross_entropy}\n";

}  // namespace

TEST_CASE("read_model says where and what it expected", "[models][errors]") {
  struct Case {
    std::string right, wrong, message;
  };
  const auto edit = GENERATE(values<Case>({
      {"pad: 1", "pads: 1", "m.yaml:5:57: layers[0].pads: unknown key; did you mean \"pad\"?"},
      {"pad: 1", "groups: 2",
       "m.yaml:5:65: layers[0].groups: expected a number that divides 3 channels and 4 filters, got 2"},
      {"kernel: 3", "kernel: 0",
       "m.yaml:5:54: layers[0].kernel: expected an integer from 1 to 1000000, got \"0\""},
      {"kernel: 3", "kernel: 11",
       "m.yaml:5:54: layers[0].kernel: a kernel of 11 does not fit into a padded input of 10"},
      {"kernel: 3", "kernel: [3, 3, 3]",
       "m.yaml:5:54: layers[0].kernel: expected 2 integers, one for each spatial dimension, got 3"},
      {"[a, a]", "[a, c]",
       "m.yaml:6:38: layers[1].inputs[1]: expected the name of a layer above, or input, got \"c\""},
      {"[a, a]", "[a]", "m.yaml:6:5: layers[1]: a layer of kind add takes two or more inputs, got 1"},
      {"[a, a]", "[a, input]",
       "m.yaml:6:5: layers[1]: expected inputs of equal shapes, got 4 x 8 x 8 and 3 x 8 x 8"},
      {"name: b", "name: a", "m.yaml:6:5: layers[1]: two layers are called a"},
      {"[256]", "[255]",
       "m.yaml:7:40: layers[2].shape: expected a shape of 256 elements (4 x 8 x 8), got 255"},
      {"reshape, shape: [256]", "dense, units: 4",
       "m.yaml:7:5: layers[2]: a dense layer takes an input of 1 to 2 dimensions, got 4 x 8 x 8"},
      {"kind: softmax_cross_entropy", "kind: relu",
       "m.yaml:8:5: layers[3]: no layer reads the output of loss; end the network with a loss such as "
       "softmax_cross_entropy"},
      {"filters: 4, ", "", "m.yaml:5:5: layers[0].filters: missing (expected an integer >= 1)"},
      {"source: s\n", "", "m.yaml:1:1: source: missing (expected where the layers come from)"},
      {"[3, 8, 8]", "[]", "m.yaml:3:8: input: expected a shape of 1 to 4 integers, got a list"},
      {"[3, 8, 8]", "[1000000000, 1000000, 1000]",
       "m.yaml:3:8: input: an array of 1000000000 x 1000000 x 1000 is too large"},
  }));
  std::string text = kGood;
  CHECK_NOTHROW(model_of(text));
  text.replace(text.find(edit.right), edit.right.size(), edit.wrong);
  CAPTURE(text);
  CHECK_THROWS_WITH(model_of(text), edit.message);
}
