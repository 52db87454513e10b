#include "forecast/draws/alternatives.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "forecast/discrepancy.hpp"
#include "forecast/posterior.hpp"
#include "forecast/summary.hpp"
#include "scenarios/reader/sweep.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

/// 8 and 16 workers, each with two values of a key. The first of 8 is fed in.
Scenario swept(const std::string& key, const std::string& first, const std::string& second,
               const std::string& measured = "") {
  const std::string point = key + ": " + first + "}, column: step_seconds, value: ";
  return scenario_of(
      "name: swept\nmodel: small-cnn\ntrace: derived\nplatform: dgx1v\nset: {platform.nodes: 2}\n"
      "batch_per_worker: 64\nstrategy: {kind: synchronous}\nsweep: {workers: [8, 16], " +
      key + ": [" + first + ", " + second +
      "]}\ncalibrate: [{key: strategy.compute_factor, range: [0.1, 10], source: s, point: {workers: 8, " +
      point + "1}]\n" +
      (measured.empty() ? "" : "measured: [{point: {workers: 16, " + point + measured + "}]\n"));
}

/// Draws whose steps have a common spread of 20 %, and a ratio of the key's two values of 1 to 1.04.
Simulations learned_draws(const Scenario& scenario) {
  constexpr std::size_t kDraws = 5;
  Simulations all;
  all.inputs.assign(kDraws, {});
  all.rows.assign(kDraws, std::vector<Row>(4));
  std::vector<std::size_t> points;
  for (std::size_t i = 0; i < 4; ++i) {
    const bool larger = scenario.points[i].name.find("workers=16") != std::string::npos;
    const bool second = alternatives_of(scenario).layouts[i] + alternatives_of(scenario).details[i] > 0;
    for (std::size_t draw = 0; draw < kDraws; ++draw) {
      all.rows[draw][i].set("devices", std::int64_t{larger ? 16 : 8});
      all.rows[draw][i].set("step_seconds", (1 + 0.05 * draw) * (second ? 1 + 0.01 * draw : 1));
    }
    points.push_back(i);
  }
  Library library;
  if (scenario.measurements.empty() && scenario.calibrations.empty()) return all;
  learn_errors(scenario, points, library, all);
  return all;
}

/// The width of the 90 % interval of log(step of one point / step of another), or of one alone.
double log_width(const Simulations& all, std::size_t point, std::optional<std::size_t> over = {}) {
  auto steps = predictive_values(all, point, "step_seconds");
  if (over) {
    const auto others = predictive_values(all, *over, "step_seconds");
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i] /= others[i];
  }
  const auto interval = forecast_interval(steps);
  return std::log(interval.high / interval.low);
}

std::size_t point_of(const Scenario& scenario, const std::string& workers, const std::string& value) {
  for (std::size_t i = 0; i < scenario.points.size(); ++i) {
    const std::string& name = scenario.points[i].name;
    if (name.find("workers=" + workers) != std::string::npos && name.ends_with("=" + value)) return i;
  }
  throw std::out_of_range(value);
}

}  // namespace

TEST_CASE("keys of a layout and details of it are told apart where the keys are", "[forecast]") {
  const auto layouts = [](const std::string& key, const std::string& first, const std::string& second) {
    const auto all = alternatives_of(swept(key, first, second));
    return std::set(all.layouts.begin(), all.layouts.end()).size();
  };
  CHECK(layouts("strategy.bucket", "25 MiB", "100 MiB") == 1);
  CHECK(layouts("strategy.overlap", "true", "false") == 1);
  CHECK(layouts("strategy.all_reduce", "ring", "double_tree") == 1);
  CHECK(layouts("simulation.seed", "1", "2") == 1);
  CHECK(layouts("strategy.accumulation", "1", "2") == 2);
  CHECK(layouts("strategy.recompute", "true", "false") == 2);
  CHECK(layouts("strategy.shard", "none", "parameters") == 2);
  CHECK(layouts("strategy.mesh.tensor", "1", "2") == 2);
}

TEST_CASE("points that differ in a detail alone differ by what the draws say and a small floor",
          "[forecast]") {
  Library library;
  const double floor = 2 * 1.645 * std::sqrt(2) * shipped_discrepancy(library).measured.detail;
  const double of_draws = std::log(1.04);
  for (const std::string measured : {"", "1.1"}) {
    const auto ratio = [&](const std::string& key, const std::string& first, const std::string& second,
                           const std::string& workers) {
      const Scenario scenario = swept(key, first, second, measured);
      return log_width(learned_draws(scenario), point_of(scenario, workers, second),
                       point_of(scenario, workers, first));
    };
    for (const std::string workers : {"8", "16"}) {
      const double detail = ratio("strategy.bucket", "25 MiB", "100 MiB", workers);
      CHECK(detail <= of_draws + 1.05 * floor);
      CHECK(detail > 0.5 * of_draws);
      CHECK(ratio("strategy.accumulation", "1", "2", workers) > 3 * detail);
    }
  }
}

TEST_CASE("what is measured with one detail narrows the forecast of the other", "[forecast]") {
  const auto at_other = [](const std::string& measured) {
    const Scenario scenario = swept("strategy.bucket", "25 MiB", "100 MiB", measured);
    const Simulations all = learned_draws(scenario);
    const std::size_t same = point_of(scenario, "16", "25 MiB"), other = point_of(scenario, "16", "100 MiB");
    return std::pair(log_width(all, other), all.shifts[2][other] - 0.95 * all.shifts[2][same]);
  };
  const auto [before, none] = at_other("");
  const auto [after, shift] = at_other("1.3");
  CHECK(after < 0.6 * before);
  CHECK(none == 0);
  CHECK(shift > 0);
}
