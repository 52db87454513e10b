#include "forecast/measured/next_measurement.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cmath>

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
  if (all.misfit) all.misfit = misfit_of(scenario_of(kSwept), {});  // the usual one, as in an expectation
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

namespace {

/// Two layouts on 8 and 16 devices; the target is the first of them on 64. Steps of a layout differ from draw
/// to draw by what it depends on; those of the second on 16 devices depend on the same as the target.
struct Layouts {
  Scenario scenario = scenario_of(
      "name: layouts\nmodel: small-cnn\ntrace: derived\nplatform: dgx1v\nset: {platform.nodes: 8}\n"
      "batch_per_worker: 64\nstrategy: {kind: synchronous}\nsweep: [{workers: [8, 16, 64], "
      "strategy.accumulation: [1]}, {workers: [8, 16], strategy.accumulation: [2]}]\n");
  std::vector<std::size_t> points{0, 1, 2, 3, 4};
  Simulations all;
  Library library;

  Layouts() {
    constexpr std::array kDevices{8, 16, 64, 8, 16};
    constexpr std::array kSlopes{0.0, 0.05, 0.1, 0.0, 0.1};  // of log(step) against the assumption
    for (std::size_t draw = 0; draw < 16; ++draw) {
      const double u = (draw + 0.5) / 16;
      all.inputs.push_back({u});
      auto& rows = all.rows.emplace_back(5);
      for (std::size_t i = 0; i < 5; ++i) {
        rows[i].set("devices", std::int64_t{kDevices[i]});
        rows[i].set("step_seconds", std::exp(kSlopes[i] * (2 * u - 1)));
      }
    }
    add_discrepancy(scenario, points, library, all);
  }

  double log_step(std::size_t draw, std::size_t point) const {
    return std::log(*all.rows[draw][point].number("step_seconds"));
  }
};

}  // namespace

TEST_CASE("what to measure first leaves the least error of the answer in drawn truths with errors of layouts",
          "[forecast]") {
  Layouts layouts;
  const auto next =
      next_measurements(layouts.scenario, layouts.points, 2, {16}, layouts.all, layouts.library);
  REQUIRE(next.size() == 4);
  std::vector<double> left;  // in drawn truths, as `next` is ordered
  for (const NextMeasurement& one : next) {
    double square = 0, sum = 0;
    for (std::size_t draw = 0; draw < 16; ++draw) {
      for (unsigned k = 0; k < 256; ++k) {
        const auto truth = [&](std::size_t point) {
          const bool second = point > 2;
          return layouts.log_step(draw, point) + layouts.all.log_errors[point][k] +
                 0.1 * normal_sample(k, second ? 401 : 400);  // the layouts' errors
        };
        const double error = truth(2) - truth(one.point);  // fed in, what the figure misses is carried over
        square += error * error / (16 * 256);
        sum += error / (16 * 256);
      }
    }
    left.push_back(square - sum * sum);
  }
  CHECK(std::ranges::is_sorted(left));
  CHECK(layouts.scenario.points[next.front().point].name.find("accumulation=1") != std::string::npos);
}

TEST_CASE("a measuring budget is a number of devices, and a time", "[errors]") {
  CHECK(parse_measuring_budget("8").devices == 8);
  CHECK(parse_measuring_budget("8,30 min").time.value == 1800);
  CHECK(parse_measuring_budget("").devices == 0);
  for (const char* text : {"x", "0", "8,", "8,30", "8,0 s"})
    CHECK_THROWS_WITH(parse_measuring_budget(text),
                      Catch::Matchers::StartsWith("--decide: expected a number of devices"));
}
