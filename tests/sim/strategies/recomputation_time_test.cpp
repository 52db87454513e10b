#include <catch2/catch.hpp>

#include "tests/sim/child.hpp"
#include "tests/sim/planned_run.hpp"

namespace stepcast::recomputation_time_test {
namespace {

/// Four blocks of ten layers, each 10 ms forward: norm, queries with keys and values, attention, projection,
/// addition, norm, expansion, GELU, contraction, addition.
const std::string kBlocks =
    "{name: blocks, source: s, transformer_stack: {layers: 4, width: 64, heads: 4, sequence: 32, vocabulary: "
    "100}}";

double step(const std::string& strategy, int workers = 1) {
  return numbers_from_child(
      1, [&] { return std::vector<double>{PlannedRun(workers, kBlocks, strategy, 2, 2).last_step()}; })[0];
}

}  // namespace

TEST_CASE("each kind of recomputation adds the forward passes of its layers", "[sim][mesh]") {
  const auto layers = [](const std::string& recompute) {
    const std::string mesh = "{kind: synchronous, accumulation: 2, recompute: " + recompute + "}";
    return (step(mesh) - step("{kind: synchronous, accumulation: 2, recompute: none}")) / 2 / 0.010;
  };
  CHECK(layers("selective") == Approx(4).epsilon(1e-9));
  CHECK(layers("full") == Approx(40).epsilon(1e-9));
  CHECK(layers("stage") == Approx(43).epsilon(1e-9));  // also the last norm, the vocabulary and the loss
  CHECK(layers("{every: 2}") == Approx(20).epsilon(1e-9));
  // Of six products the keys, the projection and the contraction; two norms, two additions, GELU.
  CHECK(layers("operators") == Approx(4 * (1 / 3.0 + 2 + 5)).epsilon(1e-9));
}

TEST_CASE("what is computed again runs before each block's backward pass where blocks are gathered",
          "[sim][mesh]") {
  const auto with = [](const std::string& recompute) {
    return step("{kind: synchronous, shard: parameters, recompute: " + recompute + "}", 4);
  };
  CHECK(with("selective") - with("none") == Approx(0.040).epsilon(0.02));  // exchanges hide beside more work
  CHECK(with("operators") - with("none") == Approx(0.040 * (1 / 3.0 + 7)).epsilon(0.02));
}

TEST_CASE("GPipe computes the stage again, 1F1B its blocks", "[sim][mesh]") {
  const auto with = [](const std::string& schedule, const std::string& recompute) {
    return step("{kind: pipeline, stages: 2, micro_batches: 2, schedule: " + schedule +
                    ", recompute: " + recompute + "}",
                2);
  };
  CHECK(with("gpipe", "true") == with("gpipe", "stage"));
  CHECK(with("1f1b", "true") == with("1f1b", "full"));
  CHECK(with("gpipe", "stage") > with("gpipe", "full"));
}

}  // namespace stepcast::recomputation_time_test
