#include <catch2/catch.hpp>

#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

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
  CHECK(ineffective("goyal-imagenet-1h", {"workers=16", "model=vgg16", "trace=derived",
                                          "platform.device=a100-40gb", "kernels={layout: nhwc}"}) ==
        Lines{"kernels.layout: has no effect without tensor cores and batch norm"});
  CHECK(with("{optimizer: sgd, update: fused}") ==
        Lines{"kernels.update: has no effect as fused: sgd has one operation"});
}

TEST_CASE("a single worker reports no ineffective keys", "[scenarios]") {
  CHECK(ineffective("resnet50-ethernet-cpu",
                    {"workers=1", "strategy.all_reduce=ring", "strategy.tree_piece=1 MiB"})
            .empty());
}
