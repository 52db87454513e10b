#include "runtime/scenario_points/validation_plan.hpp"

#include <catch2/catch.hpp>

#include "planned_parts.hpp"
#include "small_training.hpp"

namespace stepcast::validation_plan_test {

TEST_CASE("points that cannot be run for real are refused with the reason", "[validate]") {
  const auto why = [](const std::string& strategy, int workers, int ranks) {
    return unsupported_in_real_run(plan_of(strategy, workers, 0, 2), ranks, false);
  };
  CHECK(why("{kind: synchronous, all_reduce: mpi}", 2, 2).empty());
  CHECK(why("{kind: synchronous, all_reduce: mpi}", 2, 4).empty());  // over a group of the ranks
  CHECK(why("{kind: synchronous, all_reduce: ring, compression: one_bit}", 2, 2).empty());
  CHECK(why("{kind: synchronous, compression: top_k}", 2, 2).empty());
  CHECK(why("{kind: synchronous, compression: one_bit}", 2, 2) ==
        "compressed gradients need all_reduce: ring in a real run");
  CHECK(why("{kind: synchronous, precision: mixed}", 2, 2) ==
        "gradients of other than 4 bytes per element (precision: mixed) are simulated only");
  CHECK(why("{kind: synchronous, streams: 2}", 2, 2) ==
        "communicators with several streams are simulated only");
  CHECK(why("{kind: synchronous}", 4, 2) == "it needs 4 ranks, servers included; give --ranks 4");
}

TEST_CASE("pipelines that kernels cannot run are refused with the reason", "[validate]") {
  const auto why = [](const std::string& options, int ranks, const std::string& first = "relu") {
    const PlannedParts planned(ranks, R"(
name: test
source: test
input: [6]
layers:
  - {name: fc1, kind: dense, units: 12}
  - {name: between, kind: )" + first + R"(}
  - {name: fc2, kind: dense, units: 12}
  - {name: loss, kind: mean_squared_error}
)",
                               "{kind: pipeline, " + options + "}", 4, 1);
    return unsupported_in_real_run(planned.plan, ranks, false);
  };
  CHECK(why("stages: 2, split_points: [fc2], zero: 1, micro_batches: 2", 4).empty());
  CHECK(why("stages: 2, split_points: [fc2], zero: 2, micro_batches: 2", 4).empty());
  CHECK(why("stages: 2, split_points: [fc2], recompute: true", 2).empty());
  CHECK(why("stages: 2, split_points: [fc2], recompute: true", 2, "dropout, rate: 0.1") ==
        "simulated only: recomputation of dropout, which would drop other elements the second time");
  CHECK(why("stages: 2, split_points: [fc2], precision: mixed", 2) ==
        "simulated only: activations of 2 bytes");
}

TEST_CASE("tensor-parallel stages that share a boundary tensor are refused with the layer", "[validate]") {
  const std::string text = R"(
name: block
source: test
input: [8]
layers:
  - {name: expand, kind: dense, units: 8}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 8}
  - {name: loss, kind: mean_squared_error}
)";
  const auto why = [&](const std::string& cut) {
    const PlannedParts planned(4, text, "{kind: pipeline, stages: 2, tensor: 2, split_points: [" + cut + "]}",
                               4, 1);
    return planned.plan.sharing.simulated_only;
  };
  CHECK(why("contract") == "a stage boundary after layer gelu, whose output ranks share");
  CHECK(why("loss") == "");
}

}  // namespace stepcast::validation_plan_test
