#include "forecast/discrepancy.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "core/error.hpp"
#include "forecast/summary.hpp"
#include "report/statistics/statistics.hpp"
#include "rows.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

/// Points of 1, 8 and 16 V100 in servers of eight.
const std::string kServers =
    "name: servers\nmodel: small-cnn\ntrace: derived\nplatform: dgx1v\nset: {platform.nodes: 2}\n"
    "batch_per_worker: 64\nstrategy: {kind: synchronous}\nsweep: {workers: [1, 8, 16]}\n";

Discrepancy shipped() {
  Library library;
  return shipped_discrepancy(library);
}

/// Every point with a step of 1 s on each draw, and the term.
/// @param efficiency  of 16 devices; that of 8 is in the middle between this and 1
/// @param setting  an assignment, or empty
Simulations forecast_of(const std::string& text, int draws = 1, double efficiency = 0.5,
                        const std::string& setting = "") {
  const Scenario scenario = setting.empty() ? scenario_of(text) : scenario_of(text, {setting});
  Simulations all;
  std::vector<std::size_t> points;
  for (std::size_t i = 0; i < scenario.points.size(); ++i) points.push_back(i);
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<Row> rows;
    const double seconds = 1 + 0.001 * draw;
    rows.push_back(row_of(1, 100, seconds));
    rows.push_back(row_of(8, 800 * (1 + efficiency) / 2, seconds));
    rows.push_back(row_of(16, 1600 * efficiency, seconds));
    all.rows.push_back(rows);
  }
  Library library;
  add_scaling(scenario, points, all);
  add_discrepancy(scenario, points, library, all);
  return all;
}

}  // namespace

TEST_CASE("a single device has no discrepancy, and more devices of a server have more", "[forecast]") {
  const Discrepancy term = shipped();
  const auto width = [&](const Spread& spread) {
    const auto interval = forecast_interval(log_errors(term, spread));
    return interval.high - interval.low;
  };
  CHECK(width({1, 1}) == 0);
  CHECK(width({2, 1}) > 0);
  CHECK(width({8, 1}) > width({2, 1}));
  CHECK(width({8, 4}) > width({8, 1}));
  CHECK(width({8, 4}) < width({8, 64}));
}

TEST_CASE("the samples of eight devices have the quantiles of the file", "[forecast]") {
  const Discrepancy term = shipped();
  const auto errors = log_errors(term, {8, 1});
  REQUIRE(errors.size() == kDiscrepancySamples);
  for (std::size_t i = 0; i < term.probabilities.size(); ++i) {
    // Samples lie 1 / 256 apart in probability, where the outer quantiles rise by up to 0.02 a sample.
    CHECK(quantile(errors, term.probabilities[i]) == Approx(term.quantiles[i]).margin(0.02));
  }
}

TEST_CASE("errors between servers have the same quantiles, 0.8 times at two servers", "[forecast]") {
  const Discrepancy term = shipped();
  auto server = log_errors(term, {8, 1}), two = log_errors(term, {1, 2}), four = log_errors(term, {1, 4});
  for (std::size_t k = 0; k < two.size(); ++k) CHECK(four[k] == Approx(two[k] * 0.9 / 0.8));
  std::ranges::sort(two);  // in another order, as errors between servers do not depend on those inside
  for (std::size_t k = 0; k < two.size(); ++k) CHECK(two[k] == Approx(0.8 * server[k]).margin(1e-12));
}

TEST_CASE("the term moves no forecast, only its interval", "[forecast]") {
  const Simulations all = forecast_of(kServers, 20);
  for (const std::size_t point : {0, 1, 2}) {
    for (const char* column : {"step_seconds", "samples_per_second", "efficiency"})
      CHECK(central_values(all, point, column) == over_draws(all, point, column));
  }
  Simulations shifted = forecast_of(kServers);
  shifted.shifts = {{0, 0.1, 0.1}};  // what measurements say
  CHECK(central_values(shifted, 1, "step_seconds").front() == Approx(std::exp(0.1)));
}

TEST_CASE("the interval with the term contains the one without it", "[forecast]") {
  const Discrepancy term = shipped();
  for (const Spread& spread : {Spread{2, 1}, {8, 1}, {16, 8}, {1, 4}}) {
    const auto interval = forecast_interval(log_errors(term, spread));
    CHECK(interval.low <= 0);
    CHECK(interval.high >= 0);
  }
  const Simulations with = forecast_of(kServers, 20);
  Simulations without = with;
  without.log_errors.clear();
  for (const std::size_t point : {0, 1, 2}) {
    for (const char* column : {"step_seconds", "samples_per_second", "speedup", "efficiency"}) {
      const auto wide = forecast_interval(predictive_values(with, point, column));
      const auto narrow = forecast_interval(predictive_values(without, point, column));
      CHECK(wide.low <= narrow.low);
      CHECK(wide.high >= narrow.high);
    }
  }
}

TEST_CASE("the term changes no single device, and not the speed-up of the base", "[forecast]") {
  const Simulations all = forecast_of(kServers);
  CHECK_FALSE(has_discrepancy(all, 0, "step_seconds"));
  CHECK_FALSE(has_discrepancy(all, 0, "speedup"));
  CHECK(has_discrepancy(all, 1, "speedup"));
  CHECK_FALSE(has_discrepancy(all, 1, "communication_seconds"));
  for (const double value : predictive_values(all, 0, "step_seconds")) CHECK(value == 1);
}

TEST_CASE("times and rates have the same samples, so that ratios of points are consistent", "[forecast]") {
  const Simulations all = forecast_of(kServers);
  const auto seconds = predictive_values(all, 2, "step_seconds");
  const auto rates = predictive_values(all, 2, "samples_per_second");
  const auto speedups = predictive_values(all, 2, "speedup");
  REQUIRE(seconds.size() == kDiscrepancySamples);
  for (std::size_t k = 0; k < seconds.size(); ++k) {
    CHECK(seconds[k] * rates[k] == Approx(800));
    CHECK(speedups[k] == Approx(rates[k] / 100));
  }
  CHECK(predictive_values(forecast_of(kServers), 2, "step_seconds") == seconds);  // to the bit
}

TEST_CASE("no step becomes shorter than its own computation", "[forecast]") {
  Simulations all = forecast_of(kServers);
  all.rows[0][2].set("compute_seconds", 0.99);
  const auto free = predictive_values(forecast_of(kServers), 2, "step_seconds");
  const auto bounded = predictive_values(all, 2, "step_seconds");
  CHECK(*std::ranges::min_element(free) < 0.9);
  CHECK(*std::ranges::min_element(bounded) == Approx(0.99));
  const auto rates = predictive_values(all, 2, "samples_per_second");
  CHECK(*std::ranges::max_element(rates) == Approx(800 / 0.99));
  for (std::size_t k = 0; k < free.size(); ++k) CHECK(bounded[k] == Approx(std::max(free[k], 0.99)));
}

TEST_CASE("no point scales better than ideally", "[forecast]") {
  const Simulations all = forecast_of(kServers, 1, 0.98);
  const auto efficiencies = predictive_values(all, 2, "efficiency");
  CHECK(*std::ranges::max_element(efficiencies) == Approx(1));
  CHECK(*std::ranges::min_element(efficiencies) < 0.9);
  for (const double one : predictive_values(all, 1, "efficiency")) CHECK(one <= 1 + 1e-12);
}

TEST_CASE("a figure that is fed in has no discrepancy, and takes its own off the others", "[forecast]") {
  const std::string fed = kServers +
                          "calibrate: [{key: strategy.compute_factor, range: [0.1, 10], point: {workers: 8}, "
                          "column: step_seconds, "
                          "value: 1, source: none}]\n";
  const Simulations all = forecast_of(fed);
  const Simulations free = forecast_of(kServers);
  CHECK_FALSE(has_discrepancy(all, 1, "step_seconds"));
  for (std::size_t k = 0; k < kDiscrepancySamples; ++k) {
    CHECK(all.log_errors[2][k] == Approx(free.log_errors[2][k] - free.log_errors[1][k]).margin(1e-12));
  }
}

TEST_CASE("results have the term's interval, and the seconds that measurements add", "[forecast]") {
  const Scenario scenario = scenario_of(kServers);
  Simulations all = forecast_of(kServers);
  for (Row& row : all.rows[0]) {
    for (const char* column :
         {"compute_seconds", "exposed_communication_seconds", "waiting_seconds", "data_loading_seconds"})
      row.set(column, 0.25);
  }
  Results results = summarized_results(scenario, {0, 1, 2}, all);
  CHECK_FALSE(results.rows[0].number("step_seconds_low"));
  CHECK(results.rows[0].number("step_seconds") == 1);
  CHECK(results.rows[1].number("step_seconds_low") < results.rows[1].number("step_seconds"));
  CHECK(results.rows[1].number("step_seconds") == 1);
  CHECK_FALSE(results.rows[1].number("unmodelled_seconds"));
  all.shifts = {{0, 0.1, 0.1}};
  results = summarized_results(scenario, {0, 1, 2}, all);
  CHECK(*results.rows[1].number("step_seconds") - *results.rows[1].number("unmodelled_seconds") == Approx(1));
  CHECK(results.rows[1].number("compute_seconds") == 0.25);
}

TEST_CASE("uncertainty: none turns the term off", "[forecast]") {
  CHECK(scenario_of(kServers).uncertainty.discrepancy);
  CHECK(scenario_of(kServers + "uncertainty: default\n").uncertainty.on);
  for (const char* word : {"none", "off", "false"})
    CHECK_FALSE(scenario_of(kServers + "uncertainty: " + word + "\n").uncertainty.discrepancy);
  CHECK_FALSE(scenario_of(kServers, {"uncertainty=none"}).uncertainty.on);
  CHECK_THROWS_WITH(scenario_of(kServers + "uncertainty: no\n"),
                    Catch::Matchers::Contains("uncertainty: expected"));
}

TEST_CASE("a file of the term with too few or unsorted numbers is refused", "[forecast][errors]") {
  const auto read = [](const std::string& quantiles) {
    const YamlNode node =
        parse_yaml("source: s\nprobabilities: [0.1, 0.9]\nquantiles: " + quantiles + "\n", "d.yaml");
    return read_discrepancy(YamlValue(node, ""));
  };
  CHECK(read("[0, 0.5]").quantiles == std::vector<double>{0, 0.5});
  CHECK_THROWS_WITH(read("[0]"),
                    Catch::Matchers::Contains("quantiles: expected as many numbers as probabilities has"));
  CHECK_THROWS_WITH(read("[1, 0]"), Catch::Matchers::Contains("expected ascending numbers"));
}
