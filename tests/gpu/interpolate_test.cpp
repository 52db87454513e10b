#include "gpu/interpolate.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"

using namespace stepcast;

namespace {

/// Two layers, the second without backward passes; the median of the samples is what counts.
Trace trace_of(std::int64_t batch, double forward, double backward, double second) {
  Trace trace;
  trace.name = "net-b" + std::to_string(batch);
  trace.model = "net";
  trace.batch = batch;
  trace.layers.resize(2);
  trace.layers[0].forward.seconds = {forward, 100 * forward, forward};
  trace.layers[0].backward_weights.seconds = {backward, backward, backward};
  trace.layers[1].forward.seconds = {second, second, second};
  return trace;
}

}  // namespace

TEST_CASE("a captured batch size is forecast by its own medians", "[gpu]") {
  const StepForecast f = forecast_step({trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)}, 32);
  CHECK(f.step.value == Approx(11));
  CHECK(f.below == 32);
  CHECK(f.above == 32);
}

TEST_CASE("between two captured batch sizes every pass grows in a straight line", "[gpu]") {
  const std::vector<Trace> traces{trace_of(64, 8, 8, 8), trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)};
  const StepForecast f = forecast_step(traces, 28);  // three quarters of the way from 16 to 32
  CHECK(f.step.value == Approx((1.75) + (3.5) + (4.75)));
  CHECK(f.below == 16);
  CHECK(f.above == 32);
}

TEST_CASE("what events between the passes add is taken off as at the captured batch sizes", "[gpu]") {
  std::vector<Trace> traces{trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)};
  traces[0].step_seconds = {5, 5, 50};          // the sum is 7
  traces[1].step_seconds = {11, 11};            // and 11
  traces[1].layers[0].update.seconds = {2, 2};  // 13
  const StepForecast f = forecast_step(traces, 24);
  const double ratio = (5.0 / 7 + 11.0 / 13) / 2;
  CHECK(f.step.value == Approx(ratio * 10));
  CHECK(f.update.value == Approx(ratio * 1));
}

TEST_CASE("nothing is extrapolated", "[gpu][errors]") {
  const std::vector<Trace> traces{trace_of(32, 2, 4, 5), trace_of(16, 1, 2, 4)};
  CHECK_THROWS_AS(forecast_step(traces, 8), InputError);
  CHECK_THROWS_WITH(forecast_step(traces, 33),
                    "--batch: expected 16 to 32, which were captured of net, got 33");
}
