#include <catch2/catch.hpp>

#include "tests/sim/planned_run.hpp"

namespace stepcast::fits_test {

namespace {

const std::string kDense =
    "{name: dense, source: s, input: [2000], layers: [{name: a, kind: dense, units: 2000}, {name: b, kind: "
    "dense, units: 2000}, {name: l, kind: mean_squared_error}]}";
}  // namespace

TEST_CASE("whatever the strategy, a point that does not fit says by how much and why", "[sim]") {
  const std::size_t index = GENERATE(range(std::size_t{0}, strategies().size()));
  const Strategy& strategy = strategies()[index];
  CAPTURE(strategy.kind);
  const PlannedRun fitting(4, example_model(strategy), strategy.example, 4);
  CHECK(fitting.plan.fits);
  CHECK(fitting.plan.why_not.empty());
  const PlannedRun large(4, example_model(strategy), strategy.example,
                         1'000'000'000);  // samples, on devices of 1 TB
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

TEST_CASE("stage 3 holds two gathered buckets, and the gradients of one beside its share", "[sim]") {
  const double layer = 4.0 * (2000 * 2000 + 2000);
  const auto memory = [](const std::string& bucket) {
    return PlannedRun(4, kDense, "{kind: zero, stage: 3, bucket: " + bucket + "}").plan.memory;
  };
  const Memory single = memory("1 MB"), both = memory("1 GB");  // both layers are one bucket
  CHECK(single.gathered.value == 2 * layer);
  CHECK(both.gathered.value == 2 * layer);
  CHECK(single.gradients.value == layer + 2 * layer / 4);
  CHECK(both.gradients.value == 2 * layer + 2 * layer / 4);
}

}  // namespace stepcast::fits_test
