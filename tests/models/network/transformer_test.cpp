#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/cost/cost.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

Model stack(const std::string& sizes) {
  return model_of("{name: m, source: s, transformer_stack: {" + sizes + "}}");
}

}  // namespace

TEST_CASE("a transformer stack has the parameters of its closed form", "[models]") {
  const auto l = GENERATE(1, 3);
  const auto e = GENERATE(1, 4);
  const std::int64_t w = 12, v = 50;
  const Model model =
      stack("layers: " + std::to_string(l) + ", width: 12, heads: 3, sequence: 7, vocabulary: 50, " +
            "expansion: " + std::to_string(e));
  CHECK(trainable_parameters(model) == l * ((4 + 2 * e) * w * w + (9 + e) * w) + 2 * w + v * w);
  CHECK(std::ssize(model.layers) == 10 * l + 3);
  CHECK(model.input == Shape{7, 12});
}

TEST_CASE(
    "a transformer stack takes 2 flop per weight and token, and 4 sequence x width per token for attention",
    "[models]") {
  const Model model = stack("layers: 3, width: 12, heads: 3, sequence: 7, vocabulary: 50");
  const double weights = 3 * 12 * 12 * 12 + 50 * 12;
  CHECK(forward_flops(model).value == 7 * (2 * weights + 3 * 4 * 7 * 12));
}

TEST_CASE("the shortcuts of a block skip attention and the pair of dense layers", "[models]") {
  const Model model = stack("layers: 2, width: 12, heads: 3, sequence: 7, vocabulary: 50");
  const auto name_of = [&](int index) { return model.layers[index].name; };
  const Layer& first = layer_named(model, "block1_add1");
  CHECK(name_of(first.inputs[0]) == "block1_projection");
  CHECK(name_of(first.inputs[1]) == "block0_add2");
  const Layer& second = layer_named(model, "block1_add2");
  CHECK(name_of(second.inputs[0]) == "block1_contract");
  CHECK(name_of(second.inputs[1]) == "block1_add1");
  CHECK(layer_named(model, "block0_add1").inputs[1] == -1);
  CHECK(layer_named(model, "block0_attention").causal);
}

TEST_CASE("an invalid transformer stack is refused with a reason", "[models][errors]") {
  CHECK_THROWS_WITH(stack("layers: 3, width: 12, heads: 5, sequence: 7, vocabulary: 50"),
                    "m.yaml:1:60: transformer_stack.width: expected a multiple of 5 heads, got 12");
  CHECK_THROWS_WITH(stack("layers: 3, width: 12, heads: 3, sequence: 7"),
                    "m.yaml:1:41: transformer_stack.vocabulary: missing (expected an integer >= 1)");
  CHECK_THROWS_WITH(
      model_of("{name: m, source: s, input: [4], transformer_stack: {layers: 1}}"),
      "m.yaml:1:22: input: unknown key (expected one of: name, source, sample, transformer_stack)");
}
