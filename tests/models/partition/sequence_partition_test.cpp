#include "models/partition/sequence_partition.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/cost/cost.hpp"
#include "models/loader.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

ShardedModel divided(const Model& model, int tensor, int context, ContextExchange how) {
  ShardedModel sharded = shard_tensor(model, tensor);
  if (tensor > 1) divide_tokens(model, tensor, sharded);
  divide_context(context, how, sharded);
  return sharded;
}

}  // namespace

TEST_CASE("context parallelism divides the work of every layer evenly, whatever attention exchanges",
          "[models]") {
  for (const char* name : {"gpt2-small", "llama3-8b", "mixtral-8x7b", "deepseek-v3"}) {
    const Model model = shipped_model(name);
    for (const auto how : {ContextExchange::ring, ContextExchange::all_gather, ContextExchange::all_to_all}) {
      const ShardedModel sharded = divided(model, 1, 4, how);
      CHECK(4 * forward_flops(sharded.part).value == Approx(forward_flops(model).value).epsilon(1e-12));
      CHECK(trainable_parameters(sharded.part) == trainable_parameters(model));
      CHECK(context_problem(model, 4, how).empty());
    }
  }
}

TEST_CASE("attention has 1/ways of the work also where devices have fewer heads than ways", "[models]") {
  const Model model = shipped_model("llama3-8b");  // 8 heads of keys on 8 devices of the tensor axis
  const Model tensor = shard_tensor(model, 8).part;
  const ShardedModel both = divided(model, 8, 2, ContextExchange::ring);
  CHECK(2 * forward_flops(both.part).value == Approx(forward_flops(tensor).value).epsilon(1e-12));
  CHECK(context_problem(tensor, 2, ContextExchange::ring).empty());
  CHECK(context_problem(tensor, 2, ContextExchange::all_to_all) ==
        "layer block0_attention has 1 heads of keys on a device, which 2 devices cannot share evenly");
}

TEST_CASE(
    "latent attention gathers narrow arrays of its tokens, and passes keys and values of all heads round",
    "[models]") {
  const Model model = shipped_model("deepseek-v3");
  const ShardedModel both = divided(model, 4, 2, ContextExchange::ring);
  const auto at = [&](const char* name) {
    return static_cast<std::size_t>(std::ranges::find(model.layers, name, &Layer::name) -
                                    model.layers.begin());
  };
  const double tokens = 4096.0 / 2;  // of a device of the context axis
  const auto gathered = [&](const char* name) {
    return both.exchanges[at(name)].before_forward.at(0).elements;
  };
  CHECK(gathered("block0_queries") == tokens * 1536);
  CHECK(gathered("block0_keys_values") == tokens * 512);
  CHECK(gathered("block0_rotary") == tokens * 64);
  CHECK(both.exchanges[at("block0_rotary")].during_backward.empty());  // it has no weights
  CHECK(both.part.layers[at("block0_compressed")].output == Shape{4096 / 4 / 2, 512});
  const LayerExchange& attention = both.exchanges[at("block0_attention")];
  CHECK(attention.forward_ring.value().elements == 4096 * 32 * (192 + 128));
  CHECK(attention.backward_ring.value().elements == 2 * 4096 * 32 * (192 + 128));
  CHECK(context_problem(model, 3, ContextExchange::ring).find("3 devices cannot share evenly") !=
        std::string::npos);
}

TEST_CASE("tokens that cannot be divided are named", "[models]") {
  const Model vit = shipped_model("vit-b16"), cnn = shipped_model("resnet50");
  CHECK(context_problem(vit, 2, ContextExchange::ring) != "");
  CHECK(context_problem(cnn, 2, ContextExchange::ring) ==
        "layer conv1 (convolution) mixes the tokens of a sequence");
  const Model gpt = shipped_model("gpt2-small");
  CHECK(context_problem(gpt, 3, ContextExchange::ring) ==
        "layer block0_norm1 has 1024 tokens, which 3 devices cannot share evenly");
  CHECK(token_problem(gpt, gpt, 2) ==
        "layer block0_attention (attention) is not shared and mixes the tokens of a sequence");
}
