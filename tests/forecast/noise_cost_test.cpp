#include "forecast/noise_cost.hpp"

#include <catch2/catch.hpp>

#include "forecast/forecast.hpp"
#include "rows.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

const std::string kStart =
    "name: tiny\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: ethernet-cpu\n"
    "strategy: {kind: synchronous}\n";
const std::string kNoisy = kStart +
                           "noise: {jitter: lognormal, sigma: 0.1}\nsimulation: {steps: 2}\n"
                           "sweep: {workers: [8]}\n";

Simulations forecast_of(const std::string& text) {
  ForecastOptions options;
  options.points = {0};
  Library library;
  return forecast(scenario_of(text), library, options);
}

}  // namespace

TEST_CASE("the cost of jitter and stragglers is the difference to runs without them", "[commands]") {
  Row row = row_of(8, 100, 10);
  const Row with = row;
  add_noise_losses(row, with, {});
  CHECK_FALSE(row.number("jitter_seconds"));
  add_noise_losses(row, with, {{Without::jitter, row_of(8, 125, 8)}, {Without::noise, row_of(8, 200, 5)}});
  CHECK(row.number("jitter_seconds") == 2);
  CHECK(row.number("straggler_seconds") == 3);
  CHECK_FALSE(row.number("lost_to_jitter_seconds"));

  row.set("training_hours_with_faults", 20.0);
  row.set("useful_share", 0.5);  // 3,600 steps of 10 s, of which 2 s and 3 s
  add_noise_losses(row, with, {{Without::noise, row_of(8, 200, 5)}});
  CHECK(row.number("lost_to_stragglers_seconds") == Approx(3600 * 5));
}

TEST_CASE("noise is left out kind by kind, and only where there is some", "[commands]") {
  Noise noise;
  CHECK_FALSE(leave_out(Without::noise, noise));
  noise = {Noise::Jitter::lognormal, 0.1, false, 0.2, 3};
  CHECK(leave_out(Without::jitter, noise));
  CHECK(noise.jitter == Noise::Jitter::none);
  CHECK(noise.straggler_share == 0.2);
  CHECK_FALSE(leave_out(Without::jitter, noise));
  CHECK(leave_out(Without::noise, noise));
  CHECK(noise.straggler_share == 0);
}

TEST_CASE("a point with noise is simulated without it too, kind by kind", "[commands]") {
  const std::string slow = ", straggler_share: 0.5, straggler_factor: 3}\nsimulation";
  std::string text = kNoisy;
  const Simulations jitter = forecast_of(text);
  REQUIRE(jitter.without.at(0).size() == 1);  // nobody is slow
  const auto seconds = [](const Row& row) { return row.number("step_seconds").value(); };
  const double calm = seconds(jitter.without[0].at(Without::jitter));
  CHECK(calm < seconds(jitter.rows[0][0]));  // the slowest of eight is late

  text.replace(text.find("}\nsimulation"), std::string("}\nsimulation").size(), slow);
  const Simulations both = forecast_of(text);
  REQUIRE(both.without.at(0).size() == 2);
  CHECK(seconds(both.without[0].at(Without::noise)) == Approx(calm).epsilon(1e-12));
  CHECK(seconds(both.without[0].at(Without::jitter)) > 2 * calm);

  const std::string quiet = kStart + "sweep: {workers: [2]}\n";
  CHECK(forecast_of(quiet).without.at(0).empty());
  CHECK(extra_simulations(scenario_of(quiet)) == 3);
  CHECK(extra_simulations(scenario_of(kNoisy)) == 4);
  CHECK(extra_simulations(scenario_of(text)) == 5);
  CHECK(extra_simulations(scenario_of(quiet + "set: {noise.straggler_share: 0.5}\n")) == 4);
}
