#include <catch2/catch.hpp>

#include "models/cost/cost.hpp"
#include "models/loader.hpp"
#include "models/work/host_operators.hpp"
#include "models/work/model_flops.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

/// Operators of one block: the difference of networks of two blocks and of one.
HostOperators of_block(const KernelChoice& choice) {
  const auto sum = [&](int layers) {
    const Model model =
        model_of("{name: gpt, source: s, transformer_stack: {layers: " + std::to_string(layers) +
                 ", width: 64, heads: 4, sequence: 16, vocabulary: 100}}");
    HostOperators all;
    for (const HostOperators& layer : host_operators(model, layer_costs(model, choice), choice)) {
      all.forward += layer.forward;
      all.backward += layer.backward;
      all.update += layer.update;
    }
    return all;
  };
  const HostOperators two = sum(2), one = sum(1);
  return {two.forward - one.forward, two.backward - one.backward, two.update - one.update};
}

}  // namespace

TEST_CASE("operators of a GPT block, with scale, mask and softmax in one kernel or in three", "[models]") {
  KernelChoice choice;
  choice.attention = KernelChoice::Attention::fused_softmax;
  const HostOperators fused = of_block(choice);
  // Forward: 2 norms, 4 products, 4 of attention, GELU, 2 additions.
  CHECK(fused.forward == 13);
  // Backward: 4 products of 3 operators (inputs, weights, bias), 2 norms, 8 of attention, GELU, 2 sums of
  // error signals, and one for each of 12 tensors.
  CHECK(fused.backward == 37);
  CHECK(fused.update == 12);
  choice.attention = KernelChoice::Attention::eager;
  CHECK(of_block(choice).forward == fused.forward + 2);
  CHECK(of_block(choice).backward == fused.backward + 2);
}

TEST_CASE("softmax in fp32 casts both ways, and a fused update is not counted by tensor", "[models]") {
  KernelChoice choice;
  choice.attention = KernelChoice::Attention::eager;
  const HostOperators half = of_block(choice);
  choice.fp32_scores = true;
  choice.update = KernelChoice::Update::fused;
  CHECK(of_block(choice).forward == half.forward + 2);
  CHECK(of_block(choice).backward == half.backward + 2);
  CHECK(of_block(choice).update == 0);
}

TEST_CASE("Megatron-LM's loss and loop issue more operators than PyTorch's loss", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [4, 8], layers: [{name: v, kind: dense, units: 16}, "
      "{name: l, kind: softmax_cross_entropy}]}");
  const auto loss = [&](KernelChoice::CrossEntropy kind) {
    KernelChoice choice;
    choice.cross_entropy = kind;
    return host_operators(model, layer_costs(model, choice), choice).back();
  };
  const HostOperators usual = loss(KernelChoice::CrossEntropy::log_softmax);
  const HostOperators megatron = loss(KernelChoice::CrossEntropy::vocab_parallel);
  CHECK(usual.forward == 1);
  CHECK(megatron.forward == 20 + 24);
  CHECK(megatron.backward == 8 + 10);
}

namespace {

Model shipped(const std::string& name) {
  return load_model(std::string(STEPCAST_SOURCE_DIR) + "/models", name);
}

}  // namespace

TEST_CASE("the work of a GPT is what Megatron and PaLM count", "[models]") {
  const double layers = 96, width = 12288, tokens = 2048, vocabulary = 50257;
  const Model gpt = shipped("gpt3-175b");
  const double megatron =
      72 * tokens * layers * width * width * (1 + tokens / (6 * width) + vocabulary / (12 * width * layers));
  CHECK(training_flops(gpt).value == Approx(megatron).epsilon(1e-3));
  const double palm =
      tokens * (6 * static_cast<double>(trainable_parameters(gpt)) + 12 * layers * width * tokens);
  CHECK(palm_flops(gpt).value == Approx(palm));
  CHECK(palm == Approx(megatron).epsilon(0.01));
}

TEST_CASE("only language models have tokens", "[models]") {
  CHECK(tokens_of_sample(shipped("llama3-8b")) == 8192);
  CHECK(tokens_of_sample(shipped("bert-base")) == 512);
  CHECK(tokens_of_sample(shipped("gpt2-small")) == 1024);  // begins behind its embedding
  CHECK(tokens_of_sample(shipped("mixtral-8x7b")) > 0);
  CHECK(palm_flops(shipped("mixtral-8x7b")).value == 0);  // a token uses a part of the experts
  for (const char* name : {"vit-b16", "resnet50", "nnlo-gru", "small-mlp"})
    CHECK(tokens_of_sample(shipped(name)) == 0);
}
