#include "strategies/mesh/recomputation.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/yaml.hpp"
#include "models/cost/step_memory.hpp"
#include "models/loader.hpp"
#include "tests/models/read_text.hpp"

namespace stepcast::recomputation_test {
namespace {

constexpr double kSequence = 64, kWidth = 32, kHeads = 4, kBlocks = 5, kSamples = 3;

/// Blocks of the form that the paper counts: GELU in 4 h, dropout after both parts and in attention.
Model paper_model() {
  return model_of(fmt::format(
      "{{name: m, source: s, input: [{0}], layers: [{{name: tokens, kind: embedding, rows: 50, columns: "
      "{1}}}, "
      "{{repeat: {2}, name: block, layers: [{{name: norm1, kind: layer_norm}}, {{name: qkv, kind: dense, "
      "units: {3}}}, {{name: attention, kind: attention, heads: {4}, dropout: 0.1}}, {{name: projection, "
      "kind: "
      "dense, units: {1}}}, {{name: drop1, kind: dropout, rate: 0.1}}, {{name: add1, kind: add, inputs: "
      "[drop1, previous]}}, {{name: norm2, kind: layer_norm}}, {{name: expand, kind: dense, units: {5}}}, "
      "{{name: gelu, kind: gelu}}, {{name: contract, kind: dense, units: {1}}}, {{name: drop2, kind: "
      "dropout, "
      "rate: 0.1}}, {{name: add2, kind: add, inputs: [drop2, add1]}}]}}, {{name: vocabulary, kind: dense, "
      "units: 50}}, {{name: loss, kind: softmax_cross_entropy}}]}}",
      kSequence, kWidth, kBlocks, 3 * kWidth, kHeads, 4 * kWidth));
}

MemoryOptions options_of(const Model& model, const std::string& recompute) {
  MemoryOptions options{.framework = MemoryOptions::Framework::pytorch, .workspace = {}};
  options.precision = MemoryOptions::Precision::mixed;
  options.half_parameters = true;
  options.batch = kSamples;
  options.in_flight = 2;
  const YamlNode node = parse_yaml("recompute: " + recompute, "s.yaml");
  const YamlMap map = YamlValue(node, "").any_map();
  options.recomputed = recomputed_layers(model, read_recompute(map, PipelineOrder::one_forward_one_backward));
  return options;
}

/// Bytes that a micro-batch holds between its passes.
double held(const Model& model, const std::string& recompute) {
  return peak_of_step(model, options_of(model, recompute)).saved.value;
}

}  // namespace

// The paper leaves out the statistics of norms, 8 bytes a token for each of two: 0.25 bytes an element here.
constexpr double kElements = kSequence * kSamples * kWidth, kStatistics = 2 * 8 / kWidth;
constexpr double kScores = 5 * kHeads * kSequence * kSequence * kSamples;

TEST_CASE("selective recomputation frees 5 a s^2 b bytes of each block's 34 s b h + 5 a s^2 b", "[mesh]") {
  const Model model = paper_model();
  const double block = (34 + kStatistics) * kElements + kScores;
  const double all = held(model, "none"), selective = held(model, "selective");
  // Tensors take multiples of 512 bytes.
  CHECK(all - selective == Approx(kBlocks * kScores).epsilon(1e-3));
  const double head = held(model, "full") - 2 * kBlocks * kElements;  // the layers outside the blocks
  CHECK(all - head == Approx(kBlocks * block).epsilon(0.01));
}

TEST_CASE("full recomputation keeps a block's input, every: 2 that of every second block", "[mesh]") {
  const Model model = paper_model();
  const double block = held(model, "none") - held(model, "{every: 5}");  // one block is computed again
  CHECK(held(model, "none") - held(model, "full") == Approx(5 * block).epsilon(1e-3));
  CHECK(held(model, "none") - held(model, "{every: 2}") == Approx(2 * block).epsilon(1e-3));
  CHECK(block == Approx((32 + kStatistics) * kElements + kScores).epsilon(0.01));
}

TEST_CASE("a stage that is computed again keeps nothing but its input", "[mesh]") {
  const Model model = paper_model();
  constexpr double kLoss = 512;  // the smallest block of the allocator
  CHECK(held(model, "stage") == kLoss);
  MemoryOptions options = options_of(model, "stage");
  options.in_flight = 100;
  const StepMemory many = peak_of_step(model, options);
  options.in_flight = 2;
  const StepMemory two = peak_of_step(model, options);
  CHECK((many.activations - two.activations).value == 98 * kLoss);
  CHECK(many.input.value == Approx(50 * two.input.value));
  options.keeps_last = true;  // its peak is as high, because a stage that is computed again is whole
  CHECK(peak_of_step(model, options).activations.value == two.activations.value);
}

TEST_CASE("flash attention leaves selective recomputation one number a row of scores to free", "[mesh]") {
  const Model model = paper_model();
  MemoryOptions all = options_of(model, "none"), selective = options_of(model, "selective");
  for (MemoryOptions* options : {&all, &selective}) options->attention = MemoryOptions::Attention::flash;
  const double freed = (peak_of_step(model, all).saved - peak_of_step(model, selective).saved).value;
  CHECK(freed == Approx(kBlocks * 4 * kHeads * kSequence * kSamples));
}

TEST_CASE("operators: attention and every second product stay", "[mesh]") {
  const Model llama = shipped_model("llama3-8b");
  const auto how = recomputed_layers(llama, Recompute{Recompute::Kind::operators});
  const auto again = [&](const char* name) {
    for (std::size_t i = 0; i < llama.layers.size(); ++i)
      if (llama.layers[i].name == std::string("block0_") + name) return how[i].again;
    return -1.0;
  };
  CHECK(again("qkv") == Approx(1024.0 / 6144));  // the keys, second of seven products
  CHECK(again("attention") == 0);
  CHECK(again("projection") == 1);  // fourth
  CHECK(again("expand") == 0.5);    // fifth and sixth
  CHECK(again("contract") == 0);    // seventh
  CHECK(again("norm1") == 1);
  // Of a token: the block's input, queries, values, attention's output, half of expand, contract's output in
  // 2 bytes, and 4 bytes a head.
  MemoryOptions options{.framework = MemoryOptions::Framework::pytorch, .workspace = {}};
  options.precision = MemoryOptions::Precision::mixed;
  options.half_parameters = true;
  options.attention = MemoryOptions::Attention::flash;
  options.in_flight = 2;
  options.recomputed = recomputed_layers(llama, Recompute{Recompute::Kind::full});
  const double full = peak_of_step(llama, options).saved.value;
  options.recomputed = how;
  const double token = 2 * (4096 + 1024 + 4096 + 14336 + 4096) + 4 * 32;
  CHECK(peak_of_step(llama, options).saved.value - full == Approx(32 * 8192 * token).epsilon(1e-6));
}

TEST_CASE("early_stop leaves out the end of a block, whose outputs no backward pass reads", "[mesh]") {
  const auto again = [](const Model& model, const std::string& keys) {
    const YamlNode node = parse_yaml(keys, "s.yaml");
    const Recompute recompute =
        read_recompute(YamlValue(node, "").any_map(), PipelineOrder::one_forward_one_backward);
    std::vector<std::string> left_out;
    const auto how = recomputed_layers(model, recompute);
    const LayerBlock& block = model.blocks.front();
    for (int i = block.first; i < block.last; ++i)
      if (how[i].again == 0) left_out.push_back(model.layers[i].name);
    return left_out;
  };
  const Model llama = shipped_model("llama3-8b");
  using Names = std::vector<std::string>;
  CHECK(again(llama, "{recompute: full}") == Names{});
  CHECK(again(llama, "{recompute: full, early_stop: true}") == Names{"block0_contract", "block0_add2"});
  CHECK(again(paper_model(), "{recompute: true, early_stop: true}") ==
        Names{"block0_add2"});  // after dropout
  const Names operators = again(llama, "{recompute: operators}");
  CHECK(again(llama, "{recompute: operators, early_stop: true}") == operators);
}

TEST_CASE("recompute: true is GPipe's with its schedule, a wrong word is refused", "[mesh][errors]") {
  const auto read = [](const std::string& text, PipelineOrder order) {
    const YamlNode node = parse_yaml("{recompute: " + text + "}", "s.yaml");
    return read_recompute(YamlValue(node, "").any_map(), order);
  };
  CHECK(read("true", PipelineOrder::gpipe).kind == Recompute::Kind::stage);
  CHECK(read("true", PipelineOrder::interleaved).kind == Recompute::Kind::full);
  CHECK_THROWS_WITH(
      read("halves", PipelineOrder::gpipe),
      "s.yaml:1:13: recompute: expected true, false, none, selective, operators, full, stage or {every: "
      "N}, got \"halves\"");
  CHECK_THROWS_WITH(read("{every: 0}", PipelineOrder::gpipe),
                    "s.yaml:1:21: recompute.every: expected an integer from 1 to 1000, got \"0\"");
}

}  // namespace stepcast::recomputation_test
