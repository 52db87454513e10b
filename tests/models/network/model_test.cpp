#include <catch2/catch.hpp>

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
