#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "read_text.hpp"

using namespace stepcast;

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
