#include "models/partition/layer_partition.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "models/cost/cost.hpp"
#include "models/loader.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

int count(const ShardedModel& sharded, std::vector<Exchange> LayerExchange::*where, Exchange::Kind kind) {
  int sum = 0;
  for (const LayerExchange& layer : sharded.exchanges) {
    for (const Exchange& exchange : layer.*where) sum += exchange.kind == kind ? 1 : 0;
  }
  return sum;
}

}  // namespace

TEST_CASE("a group of one device changes nothing and needs no collectives", "[models]") {
  for (const char* name : {"vgg16", "gpt2-small"}) {
    const Model model = shipped_model(name);
    for (const ShardedModel& sharded : {shard_filters(model, 1), shard_tensor(model, 1)}) {
      CHECK(forward_flops(sharded.part).value == forward_flops(model).value);
      CHECK(count(sharded, &LayerExchange::before_forward, Exchange::Kind::all_gather) == 0);
    }
  }
}

TEST_CASE("evenly partitioned filters divide work and parameters evenly", "[models]") {
  const Model model = shipped_model("vgg16");
  const ShardedModel sharded = shard_filters(model, 4);
  CHECK(4 * forward_flops(sharded.part).value == Approx(forward_flops(model).value).epsilon(1e-9));
  CHECK(4 * trainable_parameters(sharded.part) == trainable_parameters(model));
  // 13 convolutions and 3 dense layers, all but the first on gathered inputs, and the softmax.
  CHECK(count(sharded, &LayerExchange::before_forward, Exchange::Kind::all_gather) == 16);
  CHECK(count(sharded, &LayerExchange::after_backward, Exchange::Kind::reduce_scatter) == 15);
}

TEST_CASE("an output that two layers read is gathered once", "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [4, 8, 8], layers: [{name: a, kind: convolution, filters: 4, kernel: 1},"
      "{name: b, kind: convolution, filters: 4, kernel: 1}, {name: c, kind: convolution, inputs: [a], "
      "filters: "
      "4, kernel: 1}, {name: d, kind: add, inputs: [b, c]}, {name: l, kind: mean_squared_error}]}");
  const ShardedModel sharded = shard_filters(model, 2);
  CHECK(count(sharded, &LayerExchange::before_forward, Exchange::Kind::all_gather) == 1);
  CHECK(sharded.exchanges[1].before_forward.at(0).elements == 4 * 8 * 8);
}

TEST_CASE("a block of tensor-parallel GPT has two all-reduces forward and two backward", "[models]") {
  const Model model = shipped_model("gpt2-small");
  const ShardedModel sharded = shard_tensor(model, 4);
  const int blocks = 12;
  // The vocabulary needs one more in each direction: for the loss forward, for the gradient of its input
  // backward.
  CHECK(count(sharded, &LayerExchange::after_forward, Exchange::Kind::all_reduce) == 2 * blocks + 1);
  CHECK(count(sharded, &LayerExchange::after_backward, Exchange::Kind::all_reduce) == 2 * blocks + 1);
  CHECK(sharded.exchanges[4].after_forward.size() + sharded.exchanges[3].after_forward.size() == 1);
  CHECK(4 * forward_flops(sharded.part).value == Approx(forward_flops(model).value).epsilon(1e-3));
}

TEST_CASE("tensor parallelism shares Llama's heads, hidden units and words", "[models]") {
  const Model model = shipped_model("llama2-70b");
  const ShardedModel sharded = shard_tensor(model, 8);
  const auto sum = Exchange::Kind::all_reduce;
  // The table of words has one more forward.
  CHECK(count(sharded, &LayerExchange::after_forward, sum) == 2 * 80 + 2);
  CHECK(count(sharded, &LayerExchange::after_backward, sum) == 2 * 80 + 1);
  CHECK(8 * forward_flops(sharded.part).value == Approx(forward_flops(model).value).epsilon(1e-12));
  const std::int64_t norms = (2 * 80 + 1) * 8192;  // on every device
  CHECK(8 * (trainable_parameters(sharded.part) - norms) == trainable_parameters(model) - norms);
  const Layer& attention = layer_named(sharded.part, "block0_attention");
  CHECK(attention.heads == 8);
  CHECK(attention.kv_heads == 1);
  CHECK(attention.input == Shape{4096, 10 * 128});
  CHECK(attention.output == Shape{4096, 8 * 128});
  CHECK(layer_named(sharded.part, "block0_contract").input == Shape{4096, 28672 / 8});
  CHECK(tensor_problem(model, 8).empty());
  CHECK(tensor_problem(model, 16) ==
        "layer block0_rotary has 8 heads of keys and values, which 16 devices cannot share evenly");
}

TEST_CASE("tensor parallelism shares heads whose queries, keys and values are three layers, and their biases",
          "[models]") {
  const Model model = model_of(
      "{name: m, source: s, input: [6, 8], layers: [{name: q, kind: dense, units: 8},"
      "{name: k, kind: dense, units: 8, bias: false, inputs: [input]},"
      "{name: v, kind: dense, units: 8, inputs: [input]},"
      "{name: a, kind: attention, heads: 4, position_bias: 5, inputs: [q, k, v]},"
      "{name: p, kind: dense, units: 8}, {name: loss, kind: mean_squared_error}]}");
  const ShardedModel sharded = shard_tensor(model, 2);
  const Layer& attention = layer_named(sharded.part, "a");
  CHECK(attention.heads == 2);
  CHECK(attention.output == Shape{6, 4});
  CHECK(attention.parameters[0].shape == Shape{5, 2});
  for (const char* name : {"q", "k", "v"}) CHECK(layer_named(sharded.part, name).output == Shape{6, 4});
  CHECK(forward_flops(sharded.part).value == forward_flops(model).value / 2);
  CHECK(count(sharded, &LayerExchange::after_forward, Exchange::Kind::all_reduce) == 1);
  CHECK(tensor_problem(model, 3).find("4 heads") != std::string::npos);
}

TEST_CASE("tensor parallelism shares the heads of latent attention, and each device projects down",
          "[models]") {
  const Model model = shipped_model("deepseek-v3");
  const ShardedModel sharded = shard_tensor(model, 4);
  const auto part = [&](const char* name) { return layer_named(sharded.part, name); };
  for (const char* name : {"block0_compressed_queries", "block0_compressed", "block0_rotary_key"})
    CHECK(part(name).output == layer_named(model, name).output);
  CHECK(part("block0_queries").parameters[0].shape == Shape{24576 / 4, 1536});
  CHECK(part("block0_keys_values").parameters[0].shape == Shape{32768 / 4, 512});
  CHECK(part("block0_rotary").output == Shape{4096, 32 * (2 * 192 + 128)});
  CHECK(part("block0_attention").output == Shape{4096, 32 * 128});
  CHECK(query_features(part("block0_attention")) == 32 * 192);
  CHECK(part("block0_projection").parameters[0].shape == Shape{7168, 16384 / 4});
  const auto at = [&](const char* name) -> const LayerExchange& {
    const auto found = std::ranges::find(model.layers, name, &Layer::name);
    return sharded.exchanges[static_cast<std::size_t>(found - model.layers.begin())];
  };
  const auto sum = [](const LayerExchange& one) { return one.after_backward.at(0).elements; };
  CHECK(sum(at("block0_queries")) == 4096 * 1536);
  CHECK(sum(at("block0_keys_values")) == 4096 * 512);
  CHECK(sum(at("block0_rotary")) == 4096 * 64);
  CHECK(at("block0_projection").after_forward.at(0).elements == 4096 * 7168);
  CHECK(tensor_problem(model, 128).empty());
  CHECK(tensor_problem(model, 256) ==
        "layer dense_block0_rotary has 128 heads, which 256 devices cannot share evenly");
}

TEST_CASE("tensor parallelism shares the hidden units of experts", "[models]") {
  const Model model = shipped_model("mixtral-8x7b");
  const ShardedModel sharded = shard_tensor(model, 4);
  CHECK(count(sharded, &LayerExchange::after_forward, Exchange::Kind::all_reduce) == 2 * 32 + 2);
  const Layer& experts = layer_named(sharded.part, "block0_experts");
  CHECK(experts.hidden == 14336 / 4);
  CHECK(experts.parameters[0].shape == Shape{8, 4096});
  CHECK(experts.parameters[1].shape == Shape{8, 2 * 14336 / 4, 4096});
  CHECK(experts.parameters[2].shape == Shape{8, 4096, 14336 / 4});
  const double router = 2.0 * 4096 * 4096 * 8 * 32;
  CHECK(4 * (forward_flops(sharded.part).value - router) ==
        Approx(forward_flops(model).value - router).epsilon(1e-12));
}

TEST_CASE("a dense layer whose activation a norm reads is not partitioned", "[models]") {
  const Model model = shipped_model("bert-base");
  const ShardedModel sharded = shard_tensor(model, 4);
  CHECK(layer_named(sharded.part, "masked").output == Shape{512, 768});
  CHECK(layer_named(sharded.part, "vocabulary").output.back() == (30522 + 3) / 4);
  CHECK(layer_named(sharded.part, "token_types").parameters.front().shape == Shape{2, 768});
}

namespace {

ShardedModel with_experts(const Model& model, const Experts& experts) {
  ShardedModel sharded = shard_tensor(model, 1);
  share_experts(experts, sharded);
  return sharded;
}

}  // namespace

TEST_CASE("the experts of a network are partitioned as they are", "[models]") {
  const Model model = shipped_model("mixtral-8x7b");
  Experts experts;
  experts.ways = 4;
  experts.capacity_factor = 1.5;
  const ShardedModel sharded = with_experts(model, experts);
  const auto all = Exchange::Kind::all_to_all;
  for (const auto where : {&LayerExchange::before_forward, &LayerExchange::after_forward,
                           &LayerExchange::before_backward, &LayerExchange::after_backward})
    CHECK(count(sharded, where, all) == 32);
  const double held = 32.0 * 2 * 3 * 14336 * 4096;  // two of eight experts
  const double shared = static_cast<double>(trainable_parameters(model)) - 4 * held;
  CHECK(static_cast<double>(trainable_parameters(sharded.part)) == shared + held);
  const Layer& layer = layer_named(sharded.part, "block0_experts");
  CHECK(expert_rows(layer) == 1.5 * 2 * 4096);
  CHECK(expert_problem(model, experts).empty());
  experts.ways = 3;
  CHECK(expert_problem(model, experts) == "3 devices cannot share 8 experts evenly");
}

TEST_CASE("experts replace hidden layers and need four all-to-alls per block", "[models]") {
  const Model model = shipped_model("gpt2-small");
  Experts experts;
  experts.count = 16;
  experts.ways = 8;
  experts.top = 2;
  const ShardedModel sharded = with_experts(model, experts);
  const auto all = Exchange::Kind::all_to_all;
  CHECK(count(sharded, &LayerExchange::before_forward, all) == 6);
  CHECK(count(sharded, &LayerExchange::after_forward, all) == 6);
  CHECK(count(sharded, &LayerExchange::before_backward, all) == 6);
  CHECK(count(sharded, &LayerExchange::after_backward, all) == 6);
  // The hidden layers of six blocks process twice the rows.
  const double hidden = 6 * 2.0 * 2 * 1024 * 768 * 3072;
  CHECK(forward_flops(sharded.part).value - forward_flops(model).value == Approx(hidden).epsilon(1e-9));
  // Each device has two experts instead of one hidden layer, biases included.
  CHECK(trainable_parameters(sharded.part) - trainable_parameters(model) ==
        6 * (2 * 768 * 3072 + 3072 + 768));
}

TEST_CASE("the capacity factor adds rows for uneven experts", "[models]") {
  const Model model = shipped_model("gpt2-small");
  Experts even, roomy;
  roomy.capacity_factor = 1.25;
  even.ways = roomy.ways = 4;
  double small = 0, large = 0;
  for (const LayerExchange& layer : with_experts(model, even).exchanges) {
    for (const Exchange& exchange : layer.before_forward) small += exchange.elements;
  }
  for (const LayerExchange& layer : with_experts(model, roomy).exchanges) {
    for (const Exchange& exchange : layer.before_forward) large += exchange.elements;
  }
  CHECK(large == Approx(1.25 * small));
}

TEST_CASE("a partitioned dense network exchanges activations, a locally connected one only halos",
          "[models]") {
  const PartitionedModel dense = partition(shipped_model("chen-huo-dnn"), 8);
  CHECK(count(dense.sharded, &LayerExchange::before_forward, Exchange::Kind::all_gather) == 8);
  const Model local = model_of(
      "{name: m, source: s, input: [3, 64, 64], layers: [{name: a, kind: locally_connected, filters: 8, "
      "kernel: "
      "5, pad: 2}, {name: b, kind: max_pool, kernel: 2}, {name: f, kind: reshape, shape: [8192]}, {name: c, "
      "kind: dense, units: 100}, {name: l, kind: "
      "mean_squared_error}]}");
  const PartitionedModel parts = partition(local, 4);
  CHECK(parts.spatial.whole_from == 3);
  CHECK(parts.sharded.part.layers[0].output == Shape{8, 32, 32});
  CHECK(parts.sharded.part.layers[0].parameters[0].shape.front() ==
        32);  // only the filters of the machine's positions
  CHECK(parts.sharded.exchanges[0].before_forward.empty());
  CHECK(device_halos(local, parts.spatial, 1)[0].forward.size() == 2);
  CHECK(parts.sharded.exchanges[3].before_forward.size() == 1);
  CHECK(parts.sharded.part.layers[3].output == Shape{25});
}

TEST_CASE("networks that cannot be partitioned are refused with a reason", "[models][errors]") {
  CHECK(filter_problem(shipped_model("resnet50"), 8).empty());
  CHECK_THAT(filter_problem(shipped_model("mesh-1k"), 256),
             Catch::Matchers::Contains("filters for 256 devices"));
  CHECK_THAT(filter_problem(shipped_model("mobilenet-v2"), 2),
             Catch::Matchers::Contains("convolution with groups"));
  CHECK_THAT(filter_problem(shipped_model("gpt2-small"), 2), Catch::Matchers::Contains("mixes features"));
  CHECK(tensor_problem(shipped_model("gpt2-small"), 4).empty());
  CHECK_THAT(tensor_problem(shipped_model("gpt2-small"), 8),
             Catch::Matchers::Contains("12 heads, which 8 devices cannot share evenly"));
  CHECK(tensor_problem(shipped_model("resnet50"), 2) == "the network has no transformer blocks");
  Experts experts;
  experts.ways = 3;
  CHECK(expert_problem(shipped_model("gpt2-small"), experts) == "3 devices cannot share 8 experts evenly");
  CHECK(expert_problem(shipped_model("resnet50"), {}) == "the network has no transformer blocks");
}

TEST_CASE("the image network of DistBelief can be partitioned over 81 machines, its speech network over 32",
          "[models]") {
  const Model image = shipped_model("distbelief-image");
  CHECK(partition_problem(image, 81).empty());
  const PartitionedModel parts = partition(image, 81);
  CHECK(parts.spatial.parts == Parts{9, 9});
  CHECK(image.layers[parts.spatial.whole_from].name == "pool3");
  CHECK(parts.sharded.part.layers[0].output == Shape{18, 12, 12});
  const double all = trainable_parameters(image);
  const double largest = trainable_parameters(parts.sharded.part);
  CHECK(largest < all / 81 * (12.0 * 12 * 81 / 1e4) *
                      1.01);  // twelve rows and columns of a hundred, where 11.1 is even
  CHECK(largest > all / 81);
  CHECK(forward_flops(parts.sharded.part).value < forward_flops(image).value / 81 * 1.2);
  CHECK(partition_problem(shipped_model("distbelief-speech"), 32).empty());
  CHECK(partition_problem(image, 12'000) != "");
}
