#include <catch2/catch.hpp>

#include "tests/sim/planned_run.hpp"

using namespace stepcast;

namespace {

struct Case {
  std::string model, strategy;
};

const std::string kDense =
    "{name: dense, source: s, input: [2000], layers: [{name: a, kind: dense, units: 2000}, {name: b, kind: "
    "dense, units: 2000}, {name: l, kind: mean_squared_error}]}";
const std::string kMaps =
    "{name: maps, source: s, input: [4, 64, 64], layers: [{name: a, kind: convolution, filters: 8, kernel: "
    "3, "
    "pad: 1}, {name: l, kind: mean_squared_error}]}";
const std::string kBlocks =
    "{name: blocks, source: s, transformer_stack: {layers: 2, width: 64, heads: 4, sequence: 32, vocabulary: "
    "100}}";

}  // namespace

TEST_CASE("whatever the strategy, a point that does not fit says by how much and why", "[sim]") {
  const auto c = GENERATE(values<Case>({
      {kDense, "{kind: synchronous}"},
      {kDense, "{kind: zero, stage: 1}"},
      {kMaps, "{kind: spatial, split: 2}"},
      {kDense, "{kind: filter_parallel, ways: 2}"},
      {kBlocks, "{kind: tensor, ways: 2}"},
      {kBlocks, "{kind: mixture_of_experts, ways: 2, experts: 4}"},
      {kDense, "{kind: model_parallel, machines: 4}"},
      {kDense, "{kind: pipeline, stages: 2}"},
      {kDense, "{kind: model_averaging, mini_batches: 4}"},
      {kDense, "{kind: bmuf, mini_batches: 4, block_momentum: 0.9}"},
      {kDense, "{kind: diloco, mini_batches: 4, outer_momentum: 0.9, outer_learning_rate: 0.7}"},
      {kDense, "{kind: parameter_server, server: colocated}"},
      {kDense, "{kind: elastic_averaging, server: colocated}"},
      {kDense, "{kind: gradient_energy_matching, server: colocated}"},
      {kDense, "{kind: sandblaster, server: colocated, tasks: 8}"},
  }));
  CAPTURE(c.strategy);
  const PlannedRun fitting(4, c.model, c.strategy, 4);
  CHECK(fitting.plan.fits);
  CHECK(fitting.plan.why_not.empty());
  const PlannedRun large(4, c.model, c.strategy, 1'000'000'000);  // samples, on devices of 1 TB
  CHECK_FALSE(large.plan.fits);
  CHECK(large.plan.why_not.starts_with("needs "));
  CHECK(large.plan.why_not.find("1000.0 GB usable") != std::string::npos);
}

TEST_CASE("filters of blocks hold the model and its last change, shared out inside a replica", "[sim]") {
  const double model = 4.0 * 2 * (2000 * 2000 + 2000);
  const auto held = [](const std::string& options) {
    return PlannedRun(4, kDense, "{mini_batches: 4, " + options + "}").plan.memory.total().value;
  };
  const double plain = held("kind: model_averaging");
  CHECK(held("kind: bmuf, block_momentum: 0.9") == plain + 2 * model);
  CHECK(held("kind: bmuf, block_momentum: 0.9, workers_per_replica: 2") == plain + model);
  CHECK(held("kind: model_averaging, aggregation: all_reduce, compression: fp16") == plain + model);
  CHECK(held("kind: model_averaging, aggregation: all_reduce, compression: one_bit") == plain + 2 * model);
}
