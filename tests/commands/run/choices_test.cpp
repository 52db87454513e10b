#include "commands/run/choices.hpp"

#include <catch2/catch.hpp>

#include "forecast/summary.hpp"
#include "rows.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

const std::string kText =
    "name: s\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: ethernet-cpu\n"
    "strategy: {kind: synchronous}\nsweep: ";
const std::string kAlgorithms =
    kText + "{workers: [8], strategy.all_reduce: [ring, recursive_doubling, binomial]}\n";

/// rates[draw][point] of points with these workers.
Simulations simulations(const std::vector<std::vector<double>>& rates, const std::vector<int>& workers) {
  Simulations all;
  for (const auto& draw : rates) {
    std::vector<Row> rows;
    for (std::size_t point = 0; point < draw.size(); ++point)
      rows.push_back(row_of(workers[point], draw[point], workers[point] / draw[point]));
    all.rows.push_back(std::move(rows));
  }
  all.without.resize(workers.size());
  return all;
}

Results compared(const Scenario& scenario, const std::vector<std::size_t>& points, const Simulations& all) {
  Results results = summarized_results(scenario, points, all);
  add_choices(scenario, points, all, results);
  return results;
}

}  // namespace

TEST_CASE("alternatives are compared draw by draw", "[forecast]") {
  // The rates of the draws differ by more than those of the first two points, which never change places.
  const Simulations all = simulations({{100, 101, 50}, {200, 202, 100}, {400, 404, 500}}, {8, 8, 8});
  const Results results = compared(scenario_of(kAlgorithms), {0, 1, 2}, all);
  CHECK(results.rows[0].number("best_probability") == 0);
  CHECK(results.rows[1].number("best_probability") == Approx(2.0 / 3));
  CHECK(results.rows[2].number("best_probability") == Approx(1.0 / 3));
  CHECK(results.rows[0].number("ratio_to_best_low") == Approx(100.0 / 101));
  CHECK(results.rows[0].number("ratio_to_best_high") == Approx(100.0 / 101));
  CHECK(results.rows[1].number("ratio_to_best") == 1);
  CHECK(equal_choices(results) ==
        std::vector<std::string>{"cannot be told apart, 2 of 3: workers=8, "
                                 "strategy.all_reduce=recursive_doubling (67 %); workers=8, "
                                 "strategy.all_reduce=binomial (33 %)"});
}

TEST_CASE("equal alternatives share the probability", "[forecast]") {
  const Results results = compared(scenario_of(kAlgorithms), {0, 1, 2},
                                   simulations({{100, 100, 50}, {200, 200, 100}}, {8, 8, 8}));
  CHECK(results.rows[0].number("best_probability") == 0.5);
  CHECK(results.rows[1].number("best_probability") == 0.5);
  CHECK(equal_choices(results).front().starts_with("cannot be told apart, 2 of 3: "));
}

TEST_CASE("points of different workers, and one simulation alone, are no alternatives", "[forecast]") {
  const Results sizes = compared(scenario_of(kText + "{workers: [1, 2]}\n"), {0, 1},
                                 simulations({{100, 150}, {100, 160}}, {1, 2}));
  CHECK_FALSE(sizes.rows[1].number("best_probability"));
  const Results one = compared(scenario_of(kAlgorithms), {0, 1, 2}, simulations({{1, 2, 3}}, {8, 8, 8}));
  CHECK_FALSE(one.rows[1].number("best_probability"));
}

TEST_CASE("workers are worth it up to the doubling that gives too little, in each draw", "[forecast]") {
  const Scenario scenario = scenario_of(kText + "{workers: [1, 2, 8]}\n");
  // From 2 to 8 workers are two doublings: 1.4 * 1.4 and 1.7 * 1.7 times.
  const Simulations all = simulations({{100, 180, 180 * 1.4 * 1.4}, {100, 180, 180 * 1.7 * 1.7}}, {1, 2, 8});
  const auto workers = worthy_workers(scenario, {0, 1, 2}, all, 1.5);
  REQUIRE(workers);
  CHECK(workers->low == 2);
  CHECK(worthy_workers(scenario, {0, 1, 2}, all, 1.9)->high == 1);
  CHECK(worthy_workers(scenario, {0, 1, 2}, all, 1.2)->low == 8);
  CHECK(to_string(*worthy_workers(scenario, {0, 1, 2}, all, 1.9), 1.9) ==
        "A further doubling gives less than 1.9 times beyond 1 workers [1 .. 1].");
  CHECK_FALSE(worthy_workers(scenario_of(kAlgorithms), {0, 1, 2}, all, 1.5));
}
