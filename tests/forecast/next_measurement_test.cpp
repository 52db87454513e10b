#include "forecast/measured/next_measurement.hpp"

#include <catch2/catch.hpp>

#include "forecast/discrepancy.hpp"
#include "forecast/measured/measurements.hpp"
#include "forecast/posterior.hpp"
#include "forecast/summary.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

const std::string kSwept =
    "name: swept\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: ethernet-cpu\nstrategy: {kind: "
    "synchronous, overlap: false}\nsweep: {workers: [1, 2, 8, 16, 64]}\n"
    "assumed: [{key: platform.network.latency, range: [1 us, 1000 us], law: log-uniform, why: unknown}]\n";

Simulations learned(const Scenario& scenario) {
  Library library;
  ForecastOptions options;
  for (std::size_t i = 0; i < scenario.points.size(); ++i) options.points.push_back(i);
  options.discrepancy = true;
  Simulations all = forecast(scenario, library, options);
  add_scaling(scenario, options.points, all);
  add_discrepancy(scenario, options.points, library, all);
  if (!scenario.measurements.empty()) learn_errors(scenario, options.points, library, all);
  return all;
}

std::vector<NextMeasurement> next_of(const Scenario& scenario, const Simulations& all,
                                     MeasuringBudget budget) {
  Library library;
  return next_measurements(scenario, {0, 1, 2, 3, 4}, 4, budget, all, library);
}

double width_of(const Simulations& all) {
  const auto interval = forecast_interval(predictive_values(all, 4, "step_seconds"));
  return std::log(interval.high / interval.low);
}

}  // namespace

TEST_CASE("what to measure next fits the budget, is not known yet, and comes in order of what it leaves",
          "[forecast]") {
  const Scenario scenario = scenario_of(kSwept);
  const Simulations all = learned(scenario);
  const auto next = next_of(scenario, all, {8});
  REQUIRE(next.size() == 3);
  CHECK(next.front().point == 2);
  for (std::size_t i = 1; i < next.size(); ++i) CHECK(next[i - 1].left <= next[i].left);
  CHECK(next.front().left < 0.9);
  CHECK(next_of(scenario, all, {0.5}).empty());
  CHECK(next_of(scenario, all, {8, {1e-9}}).empty());
  CHECK(next_measurement_lines(scenario, 4, {}, all).front().find("no point of the sweep") !=
        std::string::npos);
}

TEST_CASE("the expected interval is what a measurement of the expected value then leaves", "[forecast]") {
  Scenario before = scenario_of(kSwept);
  const Simulations unknown = learned(before);
  Measurement first;
  first.point = before.points[0].values;
  first.column = "step_seconds";
  first.value = *unknown.rows[0][0].number("step_seconds");
  before.measurements = {first};
  Library library;
  before = with_measured_points(before, library);
  const Simulations now = learned(before);
  const auto next = next_of(before, now, {16});
  REQUIRE(next.size() == 3);  // that of one worker is known
  for (const NextMeasurement& one : next) {
    Scenario after = before;
    Measurement then = first;
    then.point = before.points[one.point].values;
    then.value = median_of(predictive_values(now, one.point, "step_seconds"));
    after.measurements = {then};
    const double left = width_of(learned(after)) / width_of(now);
    CAPTURE(one.point, one.left, left);
    // Variances stand for quantiles, and the ends of ideal scaling and of the computation are left out.
    CHECK(one.left == Approx(left).margin(0.15));
  }
}

TEST_CASE("a measuring budget is a number of devices, and a time", "[errors]") {
  CHECK(parse_measuring_budget("8").devices == 8);
  CHECK(parse_measuring_budget("8,30 min").time.value == 1800);
  CHECK(parse_measuring_budget("").devices == 0);
  for (const char* text : {"x", "0", "8,", "8,30", "8,0 s"})
    CHECK_THROWS_WITH(parse_measuring_budget(text),
                      Catch::Matchers::StartsWith("--decide: expected a number of devices"));
}
