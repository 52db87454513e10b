#include "gpu/capture/step_forecast.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "strategies/plan/setting.hpp"

using namespace stepcast;

namespace {

Model net() {
  const YamlNode node = parse_yaml(
      "{name: net, source: s, input: [4], layers: [{name: a, kind: dense, units: 2}, {name: b, kind: "
      "softmax_cross_entropy}]}",
      "net.yaml");
  return read_model(YamlValue(node, ""));
}

/// A trace of two layers, the second without backward passes. Forecasts use the medians of its samples.
Trace trace_of(std::int64_t batch, double forward, double backward, double second) {
  Trace trace;
  trace.name = "net-b" + std::to_string(batch);
  trace.model = "net";
  trace.batch = batch;
  trace.layers.resize(2);
  trace.layers[0].name = "a";
  trace.layers[1].name = "b";
  trace.layers[0].forward.seconds = {forward, 100 * forward, forward};
  trace.layers[0].backward_weights.seconds = {backward, backward, backward};
  trace.layers[1].forward.seconds = {second, second, second};
  return trace;
}

}  // namespace

TEST_CASE("a captured batch size is forecast by its own medians", "[gpu]") {
  const StepForecast f = forecast_step(net(), {trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)}, 32);
  CHECK(f.step.value == Approx(11));
  CHECK(f.below == 32);
  CHECK(f.above == 32);
}

TEST_CASE("between two captured batch sizes every pass is interpolated linearly", "[gpu]") {
  const std::vector<Trace> traces{trace_of(64, 8, 8, 8), trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)};
  const StepForecast f = forecast_step(net(), traces, 28);  // three quarters of the way from 16 to 32
  CHECK(f.step.value == Approx((1.75) + (3.5) + (4.75)));
  CHECK(f.below == 16);
  CHECK(f.above == 32);
}

TEST_CASE("the forecast is the sum of the layer times of stepcast run, without the untimed steps", "[gpu]") {
  std::vector<Trace> traces{trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)};
  traces[0].step_seconds = {5, 5, 50};          // the sum is 7
  traces[1].step_seconds = {11, 11};            // and 11
  traces[1].layers[0].update.seconds = {2, 2};  // 13
  const StepForecast f = forecast_step(net(), traces, 24);
  CHECK(f.step.value == Approx(10));
  double sum = 0;
  for (const LayerSeconds& layer : layer_times(net(), {&traces[0], &traces[1]}, 24).median)
    sum += layer.forward + layer.backward + layer.update;
  CHECK(f.step.value == sum);
}

TEST_CASE("the doubts of both traces come with the forecast", "[gpu]") {
  std::vector<Trace> traces{trace_of(16, 1, 2, 4), trace_of(32, 2, 4, 5)};
  traces[0].flags = {"noisy"};
  traces[1].flags = {"warm"};
  CHECK(forecast_step(net(), traces, 24).flags == std::vector<std::string>{"warm", "noisy"});
}

TEST_CASE("a batch size outside the captured range is refused", "[gpu][errors]") {
  const std::vector<Trace> traces{trace_of(32, 2, 4, 5), trace_of(16, 1, 2, 4)};
  CHECK_THROWS_AS(forecast_step(net(), traces, 8), InputError);
  CHECK_THROWS_WITH(forecast_step(net(), traces, 33),
                    "--batch: expected 16 to 32, the range of batch sizes captured for net, got 33");
}
