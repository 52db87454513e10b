#include <catch2/catch.hpp>

#include "scenario_text.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

TEST_CASE("keys that would let a point fit are named with the largest batch that fits", "[scenarios]") {
  Library library;
  const YamlNode document = parse_yaml(
      "{model: resnet50, trace: derived, platform: dgx-a100, strategy: {kind: synchronous}, workers: 8}",
      "text");
  const auto with_batch = [](int batch) {
    return std::vector{parse_assignment("batch_per_worker=" + std::to_string(batch))};
  };
  const Experiment large = build_experiment(document, with_batch(2048), library);
  REQUIRE_FALSE(large.plan.fits);
  CHECK(fitting_keys(document, with_batch(2048), large, library) ==
        std::vector<std::string>{"batch_per_worker: 256", "strategy.accumulation: 8"});
  CHECK(build_experiment(document, with_batch(256), library).plan.fits);
  CHECK_FALSE(build_experiment(document, with_batch(512), library).plan.fits);
}

TEST_CASE("where parameters fill the memory, keys that partition them are named", "[scenarios]") {
  Library library;
  const Scenario scenario = read_scenario(shipped_scenario("gpt-3d"), {});
  const auto& values = scenario.points.front().values;
  const Experiment whole = build_experiment(scenario.document, values, library);
  REQUIRE_FALSE(whole.plan.fits);
  CHECK(fitting_keys(scenario.document, values, whole, library) ==
        std::vector<std::string>{"strategy.zero: 1", "strategy.tensor: 2", "strategy.stages: 2"});
}

TEST_CASE("torchtitan is FSDP2 with selective recomputation, without a key mesh too", "[scenarios]") {
  Library library;
  const auto memory = [&](const std::string& strategy) {
    const YamlNode document = parse_yaml(
        "{model: llama3-8b, trace: derived, platform: dgx-h100-pod, workers: 8, batch_per_worker: 1, "
        "kernels: "
        "{precision: bf16}, strategy: {kind: synchronous, " +
            strategy + "}}",
        "text");
    return build_experiment(document, {}, library).plan.memory;
  };
  const Memory titan = memory("like: torchtitan");
  CHECK(titan.gathered.value > 0);
  CHECK(titan.total().value == memory("like: torchtitan, mesh: {}").total().value);
  const Memory full = memory("like: torchtitan, recompute: full"),
               none = memory("like: torchtitan, recompute: none");
  CHECK(full.activations < titan.activations);
  CHECK(titan.activations < none.activations);
}

TEST_CASE("torchgpipe's ResNet-101 with 25,000 images in flight fits two cards of 24 GB", "[scenarios]") {
  // kakaobrain/torchgpipe, benchmarks/resnet101-speed: pipeline-2, 1,667 micro-batches of 15 images.
  Library library;
  const YamlNode document = parse_yaml(
      "{model: resnet101, trace: derived, platform: p2-8xlarge, workers: 2, "
      "strategy: {kind: pipeline, like: torchgpipe, stages: 2, micro_batches: 1667}}",
      "text");
  const Experiment run = build_experiment(
      document, {parse_assignment("batch_per_worker=25005"), parse_assignment("platform.device=rtx-3090")},
      library);
  CHECK(run.plan.fits);
  // The input of the second stage alone: 1,024 maps of 14 x 14 in 4 bytes.
  CHECK(run.plan.memory.input.value == Approx(25005.0 * 1024 * 14 * 14 * 4).epsilon(0.01));
}

TEST_CASE("the order of the axes says which of them leave the node", "[scenarios]") {
  Library library;
  const auto ranks_in_node = [&](const std::string& more) {
    const YamlNode document = parse_yaml(
        "{model: small-transformer, trace: derived, platform: dgx-h100-pod, workers: 16, batch_per_worker: "
        "2, "
        "strategy: {kind: synchronous, mesh: {tensor: 2, data: 2, pipeline: 4}" +
            more + "}}",
        "text");
    const Plan plan = build_experiment(document, {}, library).plan;
    // The first stage's devices of tensor, and its copies.
    return std::pair(plan.communicators[0].ranks_per_node, plan.communicators[1].ranks_per_node);
  };
  using Pair = std::pair<int, int>;
  CHECK(ranks_in_node("") == Pair{2, 2});
  CHECK(ranks_in_node(", order: [tensor, context, data, pipeline]") == Pair{2, 2});
  CHECK(ranks_in_node(", order: [pipeline, tensor, context, data]") == Pair{2, 1});  // 4 x 2 fill a node of 8
  CHECK(ranks_in_node(", order: [pipeline, data, context, tensor]") == Pair{1, 2});
  CHECK_THROWS_WITH(
      ranks_in_node(", order: [tensor, data]"),
      Catch::Contains("strategy.order: expected the four axes tensor, context, data and pipeline"));
  CHECK_THROWS_WITH(ranks_in_node(", order: [tensor, tensor]"),
                    Catch::Contains("strategy.order[1]: an axis occurs twice"));
}

namespace {

using Lines = std::vector<std::string>;

/// Keys of a point of a shipped scenario that have no effect.
Lines ineffective(const std::string& scenario, const std::vector<std::string>& settings) {
  Lines lines;
  for (const IneffectiveKey& one : shipped_experiment(scenario, settings).plan.ineffective_keys)
    lines.push_back(to_string(one));
  return lines;
}

Lines on_16(std::vector<std::string> settings) {
  settings.emplace_back("workers=16");
  return ineffective("resnet50-ethernet-cpu", settings);
}

}  // namespace

TEST_CASE("a scenario in which every key has an effect has no ineffective keys", "[scenarios]") {
  CHECK(on_16({}).empty());
  CHECK(ineffective("goyal-imagenet-1h", {"workers=256"}).empty());
  CHECK(ineffective("aluminum-weak-scaling", {"workers=64", "strategy.all_reduce=ring"}).empty());
}

TEST_CASE("options of another all-reduce than the one that runs are ineffective", "[scenarios]") {
  CHECK(on_16({"strategy.all_reduce=double_tree", "strategy.channels=2"}) ==
        Lines{"strategy.channels: has no effect with all_reduce: double_tree"});
  CHECK(on_16({"strategy.inside_node=leader"}) ==
        Lines{"strategy.inside_node: has no effect with all_reduce: automatic"});
  CHECK(on_16({"strategy.all_reduce=hierarchical", "strategy.inside_node=leader"}) ==
        Lines{"strategy.inside_node: has no effect where each rank counts as a node"});
  CHECK(on_16({"strategy.all_reduce=ring", "strategy.tree_piece=1 MiB"}) ==
        Lines{"strategy.tree_piece: has no effect with all_reduce: ring"});
  CHECK(on_16({"strategy.all_reduce=ring", "strategy.channels=2"}) ==
        Lines{"strategy.channels: has no effect where each rank counts as a node"});
  CHECK(on_16({"strategy.all_reduce=ring", "strategy.channels=2", "platform=lassen"}).empty());
}

TEST_CASE("keys of an all-reduce are ineffective where none runs", "[scenarios]") {
  CHECK(on_16({"strategy.all_reduce=ring", "strategy.compression=top_k"}) ==
        Lines{"strategy.all_reduce: has no effect with compression: top_k"});
  CHECK(on_16({"strategy={kind: zero, stage: 1, all_reduce: ring}"}) ==
        Lines{"strategy.all_reduce: has no effect with kind: zero"});
  CHECK(on_16({"strategy={kind: model_averaging, mini_batches: 2, streams: 2, bucket: 1 MiB}"}) ==
        Lines{"strategy.streams: has no effect where collectives run one after the other",
              "strategy.bucket: has no effect with workers_per_replica: 1"});
  CHECK(on_16({"strategy={kind: parameter_server, all_reduce: ring}", "noise=null"}) ==
        Lines{"strategy.all_reduce: has no effect without a group_size above 1"});
}

TEST_CASE("keys outside of the strategy can be ineffective too", "[scenarios]") {
  CHECK(on_16({"noise={jitter: none, per: node, start_spread: 1 s}"}) ==
        Lines{"noise.per: has no effect without jitter or stragglers",
              "noise.start_spread: has no effect where workers keep a common pace"});
  CHECK(on_16({"noise={stragglers: [{worker: 16, factor: 2}]}"}) ==
        Lines{"noise.stragglers: has no effect where no worker has such a number"});
  CHECK(on_16({"noise={straggler_share: 0.5, straggler_factor: 1}"}) ==
        Lines{"noise.straggler_share: has no effect with straggler_factor: 1"});
  CHECK(on_16({"compression_times=cpu"}) ==
        Lines{"compression_times: has no effect without strategy.compression"});
  CHECK(on_16({"strategy.threads=1", "strategy.serial_share=0.1"}) ==
        Lines{"strategy.serial_share: has no effect with threads: 1"});
}

TEST_CASE("kernels of layers that the network does not have are ineffective", "[scenarios]") {
  const auto with = [](const std::string& kernels) {
    return ineffective("goyal-imagenet-1h",
                       {"workers=16", "trace=derived", "platform.device=a100-40gb", "kernels=" + kernels});
  };
  CHECK(with("{precision: f16, update: fused}").empty());
  CHECK(with("{precision: f16, attention: flash, gelu: eager}") ==
        Lines{"kernels.attention: has no effect without layers of attention",
              "kernels.gelu: has no effect without layers of GELU"});
  CHECK(with("{layout: nhwc}").empty());  // batch norm
  CHECK(ineffective("goyal-imagenet-1h",
                    {"workers=16", "model=vgg16", "trace=derived", "platform.device=a100-40gb",
                     "kernels={precision: f32, layout: nhwc}"}) ==
        Lines{"kernels.layout: has no effect without tensor cores and batch norm"});
  CHECK(with("{optimizer: sgd, update: fused}") ==
        Lines{"kernels.update: has no effect as fused: sgd has one operation"});
}

TEST_CASE("a single worker reports no ineffective keys", "[scenarios]") {
  CHECK(ineffective("resnet50-ethernet-cpu",
                    {"workers=1", "strategy.all_reduce=ring", "strategy.tree_piece=1 MiB"})
            .empty());
}
