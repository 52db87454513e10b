#include "models/partition/sequence_partition.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <numeric>

#include "models/cost/cost.hpp"
#include "models/loader.hpp"
#include "models/partition/pipeline_stages.hpp"
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

namespace {

double slowest(const std::vector<double>& seconds, const Stages& cuts) {
  double most = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    most = std::max(most, std::accumulate(seconds.begin() + cuts[i], seconds.begin() + cuts[i + 1], 0.0));
  }
  return most;
}

/// The least time of the slowest stage, by trying every division into stages.
double by_enumeration(const std::vector<double>& seconds, std::size_t begin, int stages) {
  if (stages == 1) return std::accumulate(seconds.begin() + begin, seconds.end(), 0.0);
  double best = 1e300, own = 0;
  for (std::size_t i = begin; i + static_cast<std::size_t>(stages) <= seconds.size(); ++i) {
    own += seconds[i];
    best = std::min(best, std::max(own, by_enumeration(seconds, i + 1, stages - 1)));
  }
  return best;
}

}  // namespace

TEST_CASE("balanced_stages minimizes the time of the slowest stage", "[models]") {
  const std::vector<double> seconds = GENERATE(std::vector<double>{3, 1, 4, 1, 5, 9, 2, 6, 5, 3, 5},
                                               std::vector<double>{0, 0, 3, 0, 0, 1, 4, 0, 0, 0, 0},
                                               std::vector<double>(11, 0.0), std::vector<double>(11, 1.0));
  for (int stages = 1; stages <= 11; ++stages) {
    const Stages cuts = balanced_stages(seconds, stages);
    REQUIRE(cuts.size() == static_cast<std::size_t>(stages) + 1);
    CHECK(std::adjacent_find(cuts.begin(), cuts.end(), std::greater_equal<>()) == cuts.end());
    CHECK(slowest(seconds, cuts) == by_enumeration(seconds, 0, stages));
  }
  CHECK_THROWS_AS(balanced_stages({1, 2}, 3), std::invalid_argument);
}

TEST_CASE("boundary_elements counts each output once, shortcuts included", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [8], layers: [{name: a, kind: dense, units: 4}, {name: b, kind: gelu},"
      "{name: c, kind: add, inputs: [b, a]}, {name: l, kind: mean_squared_error}]}");
  CHECK(boundary_elements(model, 0) == 8);
  CHECK(boundary_elements(model, 1) == 4);
  CHECK(boundary_elements(model, 2) == 8);  // b and the shortcut from a
  CHECK(boundary_elements(model, 3) == 4);
}

TEST_CASE("stages hold every parameter once and read the outputs of earlier stages", "[models]") {
  const Model model = shipped_model("gpt2-small");
  const Stages cuts = balanced_stages(std::vector<double>(model.layers.size(), 1.0), 4);
  std::int64_t parameters = 0;
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const Model stage = stage_model(model, cuts[i], cuts[i + 1]);
    parameters += trainable_parameters(stage);
    for (const Layer& layer : stage.layers) {
      for (const int input : layer.inputs) CHECK(input < std::ssize(stage.layers));
    }
  }
  CHECK(parameters == trainable_parameters(model));
}

TEST_CASE("Stages of a transformer begin with a block, those of other networks with any layer", "[models]") {
  const Model gpt = load_model(std::string(STEPCAST_SOURCE_DIR) + "/models", "gpt2-small");
  const std::vector<double> seconds(gpt.layers.size(), 1.0);
  for (const int stages : {2, 5, 13}) {  // 13: 12 blocks, and the layers after them
    const Stages cuts = balanced_stages(gpt, seconds, stages);
    REQUIRE(std::ssize(cuts) == stages + 1);
    for (int i = 1; i < stages; ++i) {
      INFO(stages << " stages, cut before " << gpt.layers[cuts[i]].name);
      CHECK(std::ranges::any_of(gpt.blocks, [&](const LayerBlock& block) {
        return block.first == cuts[i] || block.last == cuts[i];
      }));
    }
  }
  CHECK(balanced_stages(gpt, seconds, 14) == balanced_stages(seconds, 14));
  const Model resnet = load_model(std::string(STEPCAST_SOURCE_DIR) + "/models", "resnet18");
  const std::vector<double> equal(resnet.layers.size(), 1.0);
  CHECK(balanced_stages(resnet, equal, 7) == balanced_stages(equal, 7));
}
