#include "forecast/summary.hpp"

#include <catch2/catch.hpp>

#include "rows.hpp"

using namespace stepcast;

namespace {

Point point_of(const std::string& workers, const std::string& algorithm) {
  return {"workers=" + workers + ", a=" + algorithm,
          {value_of("workers", workers), value_of("a", algorithm)}};
}

/// Two series of two points each.
Scenario two_series() {
  Scenario scenario;
  scenario.name = "s";
  scenario.sweep_keys = {"workers", "a"};
  scenario.points = {point_of("8", "ring"), point_of("8", "tree"), point_of("16", "ring"),
                     point_of("16", "tree")};
  return scenario;
}

Row parts(double compute, double exposed, double waiting, double loading) {
  Row row = row_of(1, 1, 10);
  row.set("compute_seconds", compute);
  row.set("exposed_communication_seconds", exposed);
  row.set("waiting_seconds", waiting);
  row.set("data_loading_seconds", loading);
  return row;
}

}  // namespace

TEST_CASE("the base of a series has its workers as speed-up and efficiency 1", "[commands]") {
  Simulations all;
  all.rows = {{row_of(8, 100, 1), row_of(8, 50, 1), row_of(16, 150, 1), row_of(16, 100, 1)}};
  add_scaling(two_series(), {0, 1, 2, 3}, all);
  for (const std::size_t base : {0, 1}) {
    CHECK(all.rows[0][base].number("speedup") == 8);
    CHECK(all.rows[0][base].number("efficiency") == 1);
  }
  CHECK(all.rows[0][2].number("speedup") == 12);
  CHECK(all.rows[0][2].number("efficiency") == 0.75);
  CHECK(all.rows[0][3].number("speedup") == 16);
  CHECK(all.rows[0][3].number("efficiency") == 1);
}

TEST_CASE("a key that only follows the workers tells no series apart", "[commands]") {
  Scenario scenario;
  scenario.sweep_keys = {"machines", "workers"};
  for (const char* n : {"1", "8"})
    scenario.points.push_back({n, {value_of("machines", n), value_of("workers", n)}});
  Simulations all;
  all.rows = {{row_of(1, 10, 1), row_of(8, 22, 1)}};
  add_scaling(scenario, {0, 1}, all);
  CHECK(all.rows[0][1].number("speedup") == 2.2);
  CHECK(all.rows[0][1].number("efficiency") == 2.2 / 8);
}

TEST_CASE("a point of several workers that is alone in its series has no speed-up", "[commands]") {
  Simulations all;
  all.rows = {{row_of(8, 100, 1), row_of(8, 50, 1), row_of(16, 150, 1), row_of(16, 100, 1)}};
  add_scaling(two_series(), {0, 1, 2}, all);
  CHECK_FALSE(all.rows[0][1].number("speedup"));
  CHECK_FALSE(all.rows[0][1].number("efficiency"));
  CHECK(all.rows[0][2].number("speedup") == 12);
}

TEST_CASE("scaling is computed draw by draw, among the simulated points", "[commands]") {
  Simulations all;
  all.rows = {{row_of(8, 100, 1), {}, row_of(16, 150, 1), {}},
              {row_of(8, 100, 1), {}, row_of(16, 200, 1), {}}};
  add_scaling(two_series(), {0, 2}, all);
  CHECK(all.rows[0][2].number("efficiency") == 0.75);
  CHECK(all.rows[1][2].number("efficiency") == 1);
}

TEST_CASE("the bottleneck is the largest part of the reported step, with the discrepancy term",
          "[commands]") {
  CHECK(bottleneck(parts(3, 6, 1, 0)) == "communication (60 %)");
  CHECK(bottleneck(parts(7, 1, 1, 1)) == "compute (70 %)");
  CHECK(bottleneck(parts(1, 1, 7, 1)) == "stragglers (70 %)");
  CHECK(bottleneck(parts(1, 1, 1, 7)) == "data loading (70 %)");
  Row reported = parts(7, 1, 1, 1);
  reported.set("unmodelled_seconds", 4.0);
  CHECK(bottleneck(reported) == "compute (50 %)");
}

TEST_CASE("results have the swept keys, the median over draws and its interval", "[commands]") {
  const Scenario scenario = two_series();
  Simulations all;
  for (int draw = 0; draw <= 20; ++draw) {
    Row row = parts(1, 0, 0, 0);
    row.set("step_seconds", 10.0 + draw);
    row.set("fidelity", std::string(draw == 0 ? "fluid" : "message"));
    all.rows.push_back({row, {}, {}, {}});
  }
  const Results results = summarized_results(scenario, {0}, all);
  REQUIRE(results.rows.size() == 1);
  const Row& row = results.rows[0];
  CHECK(row.text("point") == "workers=8, a=ring");
  CHECK(row.text("a") == "ring");
  CHECK(row.number("step_seconds") == 20);
  CHECK(row.number("step_seconds_low") == 11);
  CHECK(row.number("step_seconds_high") == 29);
  CHECK(row.text("fidelity") == "fluid");
  CHECK(row.text("bottleneck") == "compute (100 %)");
  CHECK_FALSE(row.number("efficiency_low"));
}

TEST_CASE("one draw has no interval", "[commands]") {
  Simulations all;
  all.rows = {{parts(1, 0, 0, 0), {}, {}, {}}};
  const Results results = summarized_results(two_series(), {0}, all);
  CHECK(results.rows.at(0).number("step_seconds") == 10);
  CHECK_FALSE(results.rows.at(0).number("step_seconds_low"));
}

TEST_CASE("variance is explained only with three draws an assumption", "[commands]") {
  Scenario scenario = two_series();
  Assumption key;
  key.key = "k";
  scenario.assumptions = {key, key};
  Simulations all;
  for (int draw = 0; draw < 6; ++draw) {
    all.inputs.push_back(low_discrepancy(draw, 2));
    all.rows.push_back({row_of(1, 1, 1 + all.inputs.back()[0])});
  }
  const auto shares = variance_shares(scenario, all, {0, "step_seconds"});
  REQUIRE(shares.size() == 2);
  CHECK(std::max(shares[0].share, shares[1].share) > 0.9);
  CHECK(variance_shares(scenario, all, {0, "speedup"}).empty());  // in no draw
  all.rows.pop_back();
  CHECK(variance_shares(scenario, all, {0, "step_seconds"}).empty());
  scenario.assumptions.clear();
  CHECK(variance_shares(scenario, all, {0, "step_seconds"}).empty());
}

TEST_CASE("an assumption that moves no point is named, and a variance of rounding errors has no shares",
          "[forecast]") {
  Scenario scenario = two_series();
  Assumption moves;
  moves.key = "moves";
  Assumption idle = moves;
  idle.key = "idle";
  scenario.assumptions = {moves, idle};
  Simulations all;
  for (int draw = 0; draw < 16; ++draw) {
    all.inputs.push_back(low_discrepancy(draw, 2));
    const double rounding = 1 + 1e-15 * draw;
    all.rows.push_back({row_of(1, 1, rounding), row_of(1, 1, 1 + all.inputs.back()[0])});
  }
  CHECK(variance_shares(scenario, all, {0, "step_seconds"}).empty());
  CHECK(variance_shares(scenario, all, {1, "step_seconds"}).size() == 2);
  CHECK(unmoving_assumptions(scenario, all, {0, 1}) == std::vector<std::string>{"idle"});
  CHECK(unmoving_assumptions(scenario, all, {0}) == std::vector<std::string>{"moves", "idle"});
  scenario.assumptions[1].by_default = true;
  CHECK(unmoving_assumptions(scenario, all, {0, 1}).empty());
}

TEST_CASE("shares of a campaign's devices sum to 1 over draws in which they differ", "[commands]") {
  Simulations all;
  for (const double busy : {0.2, 0.3, 0.9}) {
    Row row = parts(1, 0, 0, 0);
    row.set("device_utilization", busy);
    row.set("idle_tail_share", busy < 0.5 ? 0.1 : 0.05);
    row.set("idle_fold_share", busy < 0.5 ? 0.9 - busy : 0.95 - busy);
    all.rows.push_back({row, {}, {}, {}});
  }
  const Row row = summarized_results(two_series(), {0}, all).rows.at(0);
  const double sum =
      *row.number("device_utilization") + *row.number("idle_tail_share") + *row.number("idle_fold_share");
  CHECK(sum == Approx(1).epsilon(1e-12));
}
