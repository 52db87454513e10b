#include <catch2/catch.hpp>
#include <stdexcept>

#include "core/error.hpp"
#include "models/layer_times/trace.hpp"

using namespace stepcast;

namespace {

/// One layer whose forward pass has the samples 0.5, 1 and 2 times `forward`.
Trace trace_of(std::int64_t batch, double forward) {
  Trace trace;
  trace.name = "b" + std::to_string(batch);
  trace.batch = batch;
  trace.step_seconds = {1};
  trace.layers = {{"a", {{0.5 * forward, forward, 2 * forward}, {}}, {}, {}, {}}};
  return trace;
}

}  // namespace

TEST_CASE("a batch has the neighbors next to it, and one neighbor where it was captured or lies outside",
          "[models]") {
  const Trace small = trace_of(4, 1), middle = trace_of(8, 3), large = trace_of(16, 4);
  const std::vector<const Trace*> traces{&large, &small, &middle};
  const BatchNeighbors between = batch_neighbors(traces, 10);
  CHECK(between.lower == &middle);
  CHECK(between.upper == &large);
  CHECK(between.upper_share == 0.25);
  CHECK(between.between());
  for (const auto& [batch, only] : {std::pair{8, &middle}, {2, &small}, {17, &large}}) {
    CHECK(batch_neighbors(traces, batch).lower == only);
    CHECK(batch_neighbors(traces, batch).upper == only);
    CHECK_FALSE(batch_neighbors(traces, batch).between());
  }
  CHECK_THROWS_AS(batch_neighbors({}, 1), std::invalid_argument);
}

TEST_CASE("an interpolated trace has medians on the straight line and the relative noise of the larger batch",
          "[models]") {
  const Trace small = trace_of(4, 1);
  Trace large = trace_of(8, 3);
  large.layers[0].forward.seconds = {2.7, 3, 3.3};
  const Trace trace = interpolated_trace(batch_neighbors({&small, &large}, 5), 5);
  CHECK(trace.batch == 5);
  CHECK(trace.step_seconds.empty());
  REQUIRE(trace.layers[0].forward.seconds.size() == 3);
  CHECK(trace.layers[0].forward.seconds[0] == Approx(0.9 * 1.5));
  CHECK(trace.layers[0].forward.seconds[1] == Approx(1.5));
  CHECK(trace.layers[0].forward.seconds[2] == Approx(1.1 * 1.5));
}

TEST_CASE("a pass that takes no time at the larger batch keeps its share of the smaller one", "[models]") {
  const Trace small = trace_of(4, 1), large = trace_of(8, 0);
  const Trace trace = interpolated_trace(batch_neighbors({&small, &large}, 5), 5);
  CHECK(median(trace.layers[0].forward.seconds).value == Approx(0.75));
}

TEST_CASE("traces of other layers are not interpolated", "[models][errors]") {
  const Trace small = trace_of(4, 1);
  Trace large = trace_of(8, 1);
  large.layers.emplace_back();
  CHECK_THROWS_WITH(interpolated_trace(batch_neighbors({&small, &large}, 5), 5),
                    "traces b4 and b8: expected the same layers");
}
