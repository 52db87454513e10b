#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/cost/cost.hpp"
#include "models/cost/memory_options.hpp"
#include "models/cost/pass_cost.hpp"
#include "models/cost/step_memory.hpp"
#include "models/partition/pipeline_stages.hpp"
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

namespace {

/// A network of one layer and a loss.
Model network_of(const std::string& input, const std::string& layer) {
  return model_of("{name: m, source: s, input: " + input + ", layers: [{name: a, " + layer +
                  "}, {name: loss, kind: mean_squared_error}]}");
}

const std::string kTied =
    "name: m\n"
    "source: s\n"
    "input: [7]\n"
    "layers:\n"
    "  - {name: tokens, kind: embedding, rows: 50, columns: 6}\n"
    "  - {name: norm, kind: rms_norm}\n"
    "  - {name: words, kind: dense, units: 50, bias: false, weight_of: tokens}\n"
    "  - {name: loss, kind: softmax_cross_entropy}\n";

const std::string kRepeated =
    "name: m\n"
    "source: s\n"
    "input: [4]\n"
    "layers:\n"
    "  - {name: first, kind: relu}\n"
    "  - repeat: 3\n"
    "    name: block\n"
    "    layers:\n"
    "      - {name: a, kind: dense, units: 4}\n"
    "      - {name: sum, kind: add, inputs: [a, previous, first]}\n"
    "  - {name: loss, kind: mean_squared_error, inputs: [block2_sum]}\n";

}  // namespace

TEST_CASE("kinds of transformers have the shapes and parameters of their definitions", "[models]") {
  struct Case {
    std::string input, layer;
    Shape output;
    std::int64_t parameters;
  };
  const auto given = GENERATE(values<Case>({
      {"[11, 20]", "kind: rms_norm", {11, 20}, 20},
      {"[11, 20]", "kind: silu", {11, 20}, 0},
      {"[11, 20]", "kind: swiglu", {11, 10}, 0},
      {"[11, 32]", "kind: attention, heads: 4, kv_heads: 2", {11, 16}, 0},
      {"[11, 24]", "kind: attention, heads: 4, kv_heads: 4", {11, 8}, 0},
      {"[11, 32]", "kind: rotary_embedding, heads: 4, kv_heads: 2", {11, 32}, 0},
      {"[11, 20]", "kind: experts, experts: 5, top: 2, hidden: 7", {11, 20}, 5 * 20 + 5 * 3 * 7 * 20},
      {"[11, 20]", "kind: position_embedding", {11, 20}, 11 * 20},
      {"[11, 20]", "kind: position_embedding, rows: 30", {11, 20}, 30 * 20},
      {"[11, 20]", "kind: class_token", {12, 20}, 20},
      {"[11, 20]", "kind: first_token", {20}, 0},
      {"[11, 20]", "kind: class_token, unused: 2", {12, 20}, 20},
      {"[11, 20]", "kind: position_embedding, trained: false", {11, 20}, 0},
      {"[11, 20]", "kind: layer_norm, affine: false", {11, 20}, 0},
      {"[11, 20]", "kind: scale", {11, 20}, 20},
      {"[11, 20]", "kind: slice, first: 4, count: 7", {7, 20}, 0},
      {"[12, 24]", "kind: attention, heads: 2, window: 4, position_bias: 9", {12, 8}, 9 * 2},
      {"[12, 8]", "kind: attention, heads: 2, inputs: [input, input, input]", {12, 8}, 0},
      // 2 x 24 values and gates, 2 x 2 x 5 states, 4 steps; 3 numbers a head, taps and their bias, the norm
      {"[12, 72]",
       "kind: state_space, heads: 4, state: 5, state_groups: 2, taps: 3",
       {12, 24},
       3 * 4 + (24 + 20) * (3 + 1) + 24},
      {"[3, 8, 9]", "kind: concatenate, inputs: [input, input]", {6, 8, 9}, 0},
  }));
  CAPTURE(given.layer);
  const Model model = network_of(given.input, given.layer);
  CHECK(model.layers[0].output == given.output);
  CHECK(trainable_parameters(model) == given.parameters);
}

TEST_CASE("grouped queries change the projections of attention and not its work", "[models]") {
  const Model model = network_of("[16, 64]", "kind: attention, heads: 6, kv_heads: 1");
  const Layer& grouped = model.layers[0];
  CHECK(grouped.output == Shape{16, 48});
  CHECK(forward_flops(model).value == 4.0 * 16 * 16 * 48);
  CHECK(internal_elements(grouped) == 6.0 * 16 * 16);
}

TEST_CASE("attention of windows and of two sequences has the work of the tokens that it attends to",
          "[models]") {
  const Model windows = network_of("[12, 24]", "kind: attention, heads: 2, window: 4");
  CHECK(forward_flops(windows).value == 4.0 * 12 * 4 * 8);
  CHECK(internal_elements(windows.layers[0]) == 2.0 * 12 * 4);
  const Model two = model_of(
      "{name: m, source: s, input: [14, 8], layers: [{name: q, kind: slice, count: 4},"
      "{name: k, kind: slice, first: 4, count: 10, inputs: [input]},"
      "{name: a, kind: attention, heads: 2, inputs: [q, k, k]}, {name: loss, kind: mean_squared_error}]}");
  CHECK(layer_named(two, "a").output == Shape{4, 8});
  CHECK(forward_flops(two).value == 4.0 * 4 * 10 * 8);
  CHECK(internal_elements(layer_named(two, "a")) == 2.0 * 4 * 10);
  // Queries, keys, values and the output, and the scores written and read.
  CHECK(layer_costs(two)[2].forward.activations == 4 * 8 + 2 * 10 * 8 + 4 * 8 + 2 * (2.0 * 4 * 10));
}

TEST_CASE("latent attention has keys and values of their own widths, and one rotated key for all heads",
          "[models]") {
  const auto text = [](const std::string& rotary, const std::string& attention) {
    return "{name: m, source: s, input: [6, 20], layers: [{name: q, kind: dense, units: 48},"
           "{name: r, kind: dense, units: 4, inputs: [input]}, {name: kv, kind: dense, units: 56, inputs: "
           "[input]}, {name: rotary, kind: rotary_embedding, heads: 4, " +
           rotary + "}, {name: a, kind: attention, heads: 4, " + attention +
           ", causal: true}, {name: loss, kind: mean_squared_error}]}";
  };
  const std::string inputs = "inputs: [q, kv, r]";
  const Model model = model_of(text("value_width: 6, " + inputs, "value_width: 6"));
  const Layer &rotary = model.layers[3], &attention = model.layers[4];
  CHECK(rotary.output == Shape{6, 4 * (12 + 12 + 6)});
  CHECK(rotary.shared_key == 4);
  CHECK(attention.output == Shape{6, 4 * 6});
  CHECK(query_features(attention) == 4 * 12);
  KernelChoice flash;
  flash.attention = KernelChoice::Attention::flash;
  const std::vector<LayerCost> eager = layer_costs(model), half = layer_costs(model, flash);
  // Scores of 12 features, sums of 6; backward the gradients of scores and of values, of keys and of queries.
  CHECK(eager[4].forward.flops.value == 2 * 6 * 6 * 4 * (12 + 6));
  CHECK(eager[4].backward_data.flops.value == 2 * 6 * 6 * 4 * (6 + 6 + 12 + 12));
  CHECK(half[4].forward.flops.value == 6 * 6 * 4 * (12 + 6));
  CHECK(half[4].backward_data.flops.value == 6 * 6 * 4 * (3 * 12 + 2 * 6));
  // Each part is read and written once, and 4 features of 4 heads and of one key are rotated.
  CHECK(half[3].forward.activations == 6 * (48 + 56 + 4 + 4 * 30) + 12 * 6 * 4 * 5);
  const auto refused = [&](const std::string& first, const std::string& second, const std::string& why) {
    CHECK_THROWS_WITH(model_of(text(first, second)), Catch::Contains(why));
  };
  refused(
      "value_width: 7, " + inputs, "value_width: 7",
      "expected keys with values of time x 4 x (12 - R + 7) and keys of all heads of time x R, got 6 x 56 "
      "and 6 x 4");
  refused("value_width: 6, inputs: [q, kv]", "value_width: 6",
          "keys with values, and keys of all heads; got 2");
  refused("value_width: 6, " + inputs, "value_width: 5", "expected 120 features less 20 of values");
}

TEST_CASE("attention with trained biases has written-out kernels and holds its scores", "[models]") {
  KernelChoice flash;
  flash.attention = KernelChoice::Attention::flash;
  MemoryOptions options;
  options.framework = MemoryOptions::Framework::pytorch;
  options.attention = MemoryOptions::Attention::flash;
  const Model plain = network_of("[12, 24]", "kind: attention, heads: 2");
  const Model biased = network_of("[12, 24]", "kind: attention, heads: 2, position_bias: 9");
  CHECK(attention_kernels(plain.layers[0], flash) == KernelChoice::Attention::flash);
  CHECK(attention_kernels(biased.layers[0], flash) == KernelChoice::Attention::eager);
  CHECK(layer_costs(biased, flash)[0].forward.products.size() == 2);
  CHECK(layer_costs(plain, flash)[0].forward.products.empty());
  CHECK(saved_tensors(biased.layers[0], options, false).elements == std::vector<double>{2.0 * 12 * 12});
  CHECK(saved_tensors(plain.layers[0], options, false).elements.empty());
}

TEST_CASE("a state space works in chunks: scores of a chunk, its states, and what reads both", "[models]") {
  const Model model =
      network_of("[12, 72]", "kind: state_space, heads: 4, state: 5, state_groups: 2, taps: 3, chunk: 6");
  CHECK(forward_flops(model).value == 2.0 * 12 * (2 * 6 * 5 + 4 * (6 * 6) + 2 * 4 * (6 * 5)));
  // The scan's output, before gate and norm.
  MemoryOptions options;
  options.framework = MemoryOptions::Framework::pytorch;
  CHECK(saved_tensors(model.layers[0], options, false).elements == std::vector<double>{12.0 * 24});
}

TEST_CASE("windows, slices and inputs of attention that do not fit are refused", "[models][errors]") {
  const auto refused = [](const std::string& input, const std::string& layer, const std::string& why) {
    CAPTURE(layer);
    CHECK_THROWS_WITH(network_of(input, layer), Catch::Matchers::Contains(why));
  };
  refused("[12, 24]", "kind: attention, heads: 2, window: 5", "window: expected a divisor of the 12 tokens");
  refused("[12, 24]", "kind: attention, heads: 2, inputs: [input, input]",
          "or queries, keys and values; got 2");
  refused("[12, 8]", "kind: attention, heads: 2, kv_heads: 1, inputs: [input, input, input]",
          "expected keys and values of time x 4, got 12 x 8 and 12 x 8");
  refused("[12, 24]", "kind: slice, first: 12, count: 1", "first: expected a row of 12, got 12");
  refused("[12, 24]", "kind: slice, first: 4, count: 9", "count: expected an integer from 1 to 8");
  refused("[12, 72]", "kind: state_space, heads: 4, state: 5", "state_space takes");
}

TEST_CASE("experts work as much as the experts that a token visits", "[models]") {
  const Model model = network_of("[11, 20]", "kind: experts, experts: 5, top: 2, hidden: 7");
  CHECK(forward_flops(model).value == 2.0 * 11 * 20 * 5 + 2 * (2.0 * 11 * 3 * 7 * 20));
  CHECK(internal_elements(model.layers[0]) == 22.0 * (3 * 7 + 2 * 20));
}

TEST_CASE("layers without products cost the elements that they move", "[models]") {
  struct Case {
    std::string layer;
    double forward;
  };
  const auto given = GENERATE(values<Case>({
      {"kind: rms_norm", 2 * 64},
      {"kind: swiglu", 64 + 32},
      {"kind: rotary_embedding, heads: 4, kv_heads: 2", 2 * 64 * 6 / 8.0},  // not the values
      {"kind: position_embedding", 2 * 64},
      {"kind: class_token", 64 + 72},
      {"kind: first_token", 0},
      {"kind: concatenate, inputs: [input, input]", 2 * 128},
  }));
  CAPTURE(given.layer);
  const PassCost cost = layer_costs(network_of("[8, 8]", given.layer)).front().forward;
  CHECK(cost.flops.value == 0);
  CHECK(cost.activations == Approx(given.forward));
}

TEST_CASE("an embedding reads the rows of its tokens and writes the gradient of its table", "[models]") {
  const LayerCost cost = layer_costs(model_of(kTied)).front();
  CHECK(cost.forward.parameters == 0);
  CHECK(cost.forward.activations == 7 + 2 * 42);
  CHECK(cost.backward_weights.parameters == 300);
}

TEST_CASE("a tied weight belongs to one layer and is multiplied with in both", "[models]") {
  const Model model = model_of(kTied);
  CHECK(trainable_parameters(model) == 50 * 6 + 6);
  CHECK(gradient_tensors(model) == 2);
  CHECK(model.layers[2].weight_of == 0);
  CHECK(forward_flops(model).value == 2.0 * 7 * 6 * 50);
  const LayerCost cost = layer_costs(model)[2];
  CHECK(cost.forward.parameters == 300);
  CHECK(cost.backward_weights.flops.value == cost.forward.flops.value);
  CHECK(cost.update.kernels == 0);
}

TEST_CASE("a pipeline stage has a copy of a tied weight of another stage", "[models]") {
  const Model model = model_of(kTied);
  const Model last = stage_model(model, 1, 4), whole = stage_model(model, 0, 4);
  CHECK(trainable_parameters(last) == 50 * 6 + 6);
  CHECK(last.layers[1].weight_of == -1);
  CHECK(whole.layers[2].weight_of == 0);
  CHECK(trainable_parameters(whole) == trainable_parameters(model));
}

TEST_CASE("a repeated block is read once for each repetition", "[models]") {
  const Model model = model_of(kRepeated);
  REQUIRE(model.layers.size() == 8);
  CHECK(model.layers[1].name == "block0_a");
  CHECK(model.layers[6].name == "block2_sum");
  CHECK(model.layers[2].inputs == std::vector<int>{1, 0, 0});
  CHECK(model.layers[4].inputs == std::vector<int>{3, 2, 0});
  CHECK(model.layers[6].inputs == std::vector<int>{5, 4, 0});
}

TEST_CASE("a repeated block equals the layers written out", "[models]") {
  const Model stack = model_of(
      "{name: m, source: s, transformer_stack: {layers: 5, width: 12, heads: 3, sequence: 8, vocabulary: "
      "20}}");
  const Model block = model_of(
      "{name: m, source: s, input: [8, 12], layers: [{repeat: 5, name: block, layers: ["
      "{name: norm1, kind: layer_norm}, {name: qkv, kind: dense, units: 36},"
      "{name: attention, kind: attention, heads: 3, causal: true}, {name: projection, kind: dense, units: "
      "12},"
      "{name: add1, kind: add, inputs: [projection, previous]}, {name: norm2, kind: layer_norm},"
      "{name: expand, kind: dense, units: 48}, {name: gelu, kind: gelu},"
      "{name: contract, kind: dense, units: 12}, {name: add2, kind: add, inputs: [contract, add1]}]},"
      "{name: final_norm, kind: layer_norm}, {name: vocabulary, kind: dense, units: 20, bias: false},"
      "{name: loss, kind: softmax_cross_entropy}]}");
  REQUIRE(block.layers.size() == stack.layers.size());
  CHECK(block.blocks == std::vector<LayerBlock>{{0, 10}, {10, 20}, {20, 30}, {30, 40}, {40, 50}});
  CHECK(stack.blocks == block.blocks);
  for (std::size_t i = 0; i < block.layers.size(); ++i) {
    CHECK(block.layers[i].name == stack.layers[i].name);
    CHECK(block.layers[i].inputs == stack.layers[i].inputs);
    CHECK(block.layers[i].output == stack.layers[i].output);
  }
  CHECK(training_flops(block).value == training_flops(stack).value);
  CHECK(kept_activations(block, {}) == kept_activations(stack, {}));
}

TEST_CASE("read_model says what is wrong with a block or a transformer's layer", "[models][errors]") {
  struct Case {
    std::string text, right, wrong, message;
  };
  const auto edit = GENERATE(values<Case>({
      {kRepeated, "repeat: 3", "repeat: 0",
       "m.yaml:6:13: layers[1].repeat: expected an integer from 1 to 10000, got \"0\""},
      {kRepeated, "name: block", "prefix: block",
       "m.yaml:7:5: layers[1].prefix: unknown key (expected one of: repeat, name, layers)"},
      {kRepeated, "previous", "loss",
       "m.yaml:10:44: layers[1].layers[1].inputs[1]: expected the name of a layer above, or input, got "
       "\"loss\""},
      {kRepeated, "name: sum", "name: a", "m.yaml:10:9: layers[1].layers[1]: two layers are called block0_a"},
      {kRepeated, "units: 4", "units: 5",
       "m.yaml:10:9: layers[1].layers[1]: expected inputs of equal shapes, got 5 and 4"},
      {kRepeated, "[block2_sum]", "[a]",
       "m.yaml:11:53: layers[2].inputs[0]: expected the name of a layer above, or input, got \"a\""},
      {kRepeated, "kind: dense, units: 4", "repeat: 2",
       "m.yaml:9:27: layers[1].layers[0].repeat: a block inside a block cannot be repeated"},
      {kTied, "units: 50", "units: 51",
       "m.yaml:7:67: layers[2].weight_of: expected a layer with a weight of 51 x 6, got \"tokens\""},
      {kTied, "weight_of: tokens", "weight_of: input",
       "m.yaml:7:67: layers[2].weight_of: expected a layer with a weight of 50 x 6, got \"input\""},
      {kTied, "kind: rms_norm", "kind: swiglu, half: 1",
       "m.yaml:6:32: layers[1].half: unknown key (expected one of: name, kind, inputs)"},
      {kTied, "kind: rms_norm", "kind: attention, heads: 4, kv_heads: 3",
       "m.yaml:6:55: layers[1].kv_heads: expected a divisor of 4 heads, got 3"},
      {kTied, "kind: rms_norm", "kind: attention, heads: 2, kv_heads: 1",
       "m.yaml:6:5: layers[1]: attention takes the features of 4 heads, 2 of queries and 1 of keys and of "
       "values, got 6"},
      {kTied, "kind: rms_norm", "kind: experts, experts: 4, top: 5, hidden: 3",
       "m.yaml:6:50: layers[1].top: expected an integer from 1 to 4, got \"5\""},
      {kTied, "kind: rms_norm", "kind: position_embedding, rows: 6",
       "m.yaml:6:50: layers[1].rows: expected an integer from 7 to 1000000000, got \"6\""},
      {kTied, "kind: rms_norm", "kind: concatenate, inputs: [tokens, input]",
       "m.yaml:6:5: layers[1]: expected inputs of shapes that differ only in the first dimension, got 7 x 6 "
       "and 7"},
  }));
  std::string text = edit.text;
  CHECK_NOTHROW(model_of(text));
  text.replace(text.find(edit.right), edit.right.size(), edit.wrong);
  CAPTURE(text);
  CHECK_THROWS_WITH(model_of(text), edit.message);
}

TEST_CASE("a file cannot describe a network without limit", "[models][errors]") {
  const std::string block = "{repeat: 10000, name: b, layers: [{name: x, kind: relu}]}";
  std::string text = "{name: m, source: s, input: [4], layers: [" + block;
  for (int i = 1; i < 11; ++i) {
    std::string more = block;
    more.replace(more.find("name: b"), 7, "name: b" + std::to_string(i) + "x");
    text += ", " + more;
  }
  CHECK_THROWS_WITH(model_of(text + "]}"), Catch::Matchers::Contains("more than 100000 layers"));
  CHECK_THROWS_WITH(
      model_of("{name: m, source: s, input: [10000000], layers: [{repeat: 10000, name: b, layers: [{name: x, "
               "kind: dense, units: 10000000}]}, {name: l, kind: mean_squared_error}]}"),
      Catch::Matchers::Contains("a network of 1e+18 parameters is too large"));
}
