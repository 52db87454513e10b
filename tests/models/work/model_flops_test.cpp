#include "models/work/model_flops.hpp"

#include <catch2/catch.hpp>

#include "models/cost/cost.hpp"
#include "models/loader.hpp"

using namespace stepcast;

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
