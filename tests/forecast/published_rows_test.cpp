#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "forecast/summary.hpp"
#include "rows.hpp"

using namespace stepcast;

namespace {

/// Points of 8 and 16 workers with the published figure.
Scenario with(const Published& published) {
  Scenario scenario;
  scenario.file = "s.yaml";
  scenario.name = "s";
  scenario.points = {{"workers=8", {value_of("workers", "8")}}, {"workers=16", {value_of("workers", "16")}}};
  scenario.published = {published};
  return scenario;
}

Published figure(const std::string& kind, const std::string& relation, double value) {
  Published published;
  published.point = {value_of("workers", "16")};
  published.column = "step_seconds";
  published.kind = kind;
  published.relation = relation;
  published.value = value;
  published.source = "a paper";
  return published;
}

/// One draw: 2 s on 8 workers, `seconds` on 16 with `efficiency`.
Simulations draw_of(double seconds, double efficiency = 1) {
  Simulations all;
  Row row = row_of(16, 1, seconds);
  row.set("efficiency", efficiency);
  all.rows = {{row_of(8, 1, 2), row}};
  return all;
}

PublishedRow compare(const Published& published, const Simulations& all) {
  const auto rows = compared_with_published(with(published), {0, 1}, all);
  REQUIRE(rows.size() == 1);
  return rows.front();
}

}  // namespace

TEST_CASE("a predicted figure has its error and lies inside its tolerance or not", "[commands]") {
  Published published = figure("predicted", "", 2.5);
  published.tolerance = 0.21;
  const PublishedRow row = compare(published, draw_of(3, 0.5));
  CHECK(row.figure.point == "workers=16");
  CHECK(row.figure.source == "a paper");
  CHECK(row.error == Approx(0.2));
  CHECK(row.inside == true);
  CHECK(row.forecast.ideal == Approx(1.5));
  CHECK(row.ideal_scaling_error == Approx(-0.4));
  published.tolerance = 0.19;
  CHECK(compare(published, draw_of(3)).inside == false);
}

TEST_CASE("assumptions are weighed by the figure that is missed most, else by the last step time",
          "[commands]") {
  Published published = figure("predicted", "", 2.5);
  published.point = {value_of("workers", "8")};
  published.column = "efficiency";
  Scenario scenario = with(published);
  Simulations all = draw_of(3);
  all.rows[0][0].set("efficiency", 1.0);
  const auto reported = [&] {
    return reported_figure(scenario, {0, 1}, compared_with_published(scenario, {0, 1}, all));
  };
  CHECK(reported().point == 0);
  CHECK(reported().column == "efficiency");
  scenario.published.push_back(figure("predicted", "", 300));  // the forecast is 3
  CHECK(reported().point == 1);
  scenario.published.push_back(scenario.published.back());
  scenario.published.back().over = {value_of("workers", "8")};
  scenario.published.back().value = 1e9;
  CHECK(reported().over == 0);
  for (Published& one : scenario.published) one.kind = "bound";
  CHECK(reported().point == 1);
  CHECK(reported().column == "step_seconds");
  CHECK_FALSE(reported().over);
}

TEST_CASE("with draws a figure lies inside the forecast interval or not", "[commands]") {
  Simulations all = draw_of(3);
  for (int draw = 1; draw <= 20; ++draw) all.rows.push_back(draw_of(3 + 0.1 * draw).rows[0]);
  const PublishedRow row = compare(figure("predicted", "", 3.2), all);
  CHECK(row.forecast.median == Approx(4));
  CHECK(row.forecast.low == Approx(3.1));
  CHECK(row.forecast.high == Approx(4.9));
  CHECK(row.inside == true);
  CHECK(compare(figure("predicted", "", 3.05), all).inside == false);
}

TEST_CASE("a figure over another point is their ratio", "[commands]") {
  Published published = figure("predicted", "", 1.5);
  published.over = {value_of("workers", "8")};
  const PublishedRow row = compare(published, draw_of(3));
  CHECK(row.forecast.median == 1.5);
  CHECK(row.error == Approx(0).margin(1e-12));
  CHECK(row.figure.point == "workers=16 / workers=8");
  CHECK_FALSE(row.forecast.ideal);
}

TEST_CASE("ideal scaling multiplies a ratio of throughputs by that of the workers", "[commands]") {
  Published published = figure("predicted", "", 1.6);
  published.column = "samples_per_second";
  published.over = {value_of("workers", "8")};
  const PublishedRow row = compare(published, draw_of(3));
  CHECK(row.forecast.ideal == Approx(2));
  CHECK(row.ideal_scaling_error == Approx(0.25));
}

TEST_CASE("a bound is kept or not", "[commands]") {
  CHECK(compare(figure("bound", "at_most", 3.1), draw_of(3)).inside == true);
  CHECK(compare(figure("bound", "at_most", 2.9), draw_of(3)).inside == false);
  CHECK(compare(figure("bound", "at_least", 2.9), draw_of(3)).inside == true);
  CHECK(compare(figure("bound", "at_least", 3.1), draw_of(3)).inside == false);
}

TEST_CASE("a trend holds or does not, also if the other point is 0", "[commands]") {
  const auto holds = [](const std::string& relation, double above, double below) {
    Published published = figure("trend", relation, 0);
    published.over = {value_of("workers", "8")};
    Simulations all = draw_of(above);
    all.rows[0][0].set("step_seconds", below);
    return compare(published, all).inside;
  };
  CHECK(holds("more_than", 3, 2) == true);
  CHECK(holds("less_than", 3, 2) == false);
  CHECK(holds("less_than", 1, 2) == true);
  CHECK(holds("more_than", 1, 2) == false);
  CHECK(holds("more_than", 1, 0) == true);
  CHECK(holds("more_than", 1, -1e-17) == true);  // what rounding leaves of nothing
  CHECK(holds("more_than", 0, 0) == false);
  CHECK(holds("less_than", 0, 0) == false);
}

TEST_CASE("a trend says by how much, as the ratio of its points", "[commands]") {
  Published published = figure("trend", "more_than", 0);
  published.over = {value_of("workers", "8")};
  Simulations all = draw_of(3);
  CHECK(compare(published, all).forecast.median == 1.5);
  CHECK_FALSE(compare(published, all).forecast.low);
  CHECK_FALSE(compare(published, all).error);
  for (int draw = 1; draw <= 20; ++draw) all.rows.push_back(draw_of(3 + 0.1 * draw).rows[0]);
  CHECK(compare(published, all).forecast.median == Approx(2));
  CHECK(compare(published, all).forecast.low == Approx(1.55));
  CHECK(compare(published, all).forecast.high == Approx(2.45));
  all.rows[0][0].set("step_seconds", 0.0);  // nothing in one draw: no ratio, but a trend
  CHECK_FALSE(compare(published, all).forecast.median);
  CHECK(compare(published, all).inside == true);
}

TEST_CASE("a trend holds by the share of the draws in which it holds", "[commands]") {
  Published published = figure("trend", "more_than", 0);
  published.over = {value_of("workers", "8")};
  published.counted = false;
  published.tuned = "a look";
  const auto with_share = [&](int holding) {  // of ten draws
    Simulations all = draw_of(holding > 0 ? 3 : 1);
    for (int draw = 1; draw < 10; ++draw) all.rows.push_back(draw_of(draw < holding ? 3 : 1).rows[0]);
    return compare(published, all);
  };
  CHECK(with_share(9).inside == true);
  CHECK(with_share(8).forecast.share == Approx(0.8));
  CHECK_FALSE(with_share(8).inside);
  CHECK_FALSE(with_share(2).inside);
  CHECK(with_share(1).inside == false);
  CHECK_FALSE(with_share(9).figure.counted);
  CHECK(with_share(9).figure.tuned == "a look");
}

TEST_CASE("a point or a column that is not there is the user's mistake", "[commands][errors]") {
  Published published = figure("predicted", "", 1);
  published.point = {value_of("workers", "32"), value_of("a", "x")};
  CHECK_THROWS_AS(compare(published, draw_of(3)), InputError);
  CHECK_THROWS_WITH(compare(published, draw_of(3)),
                    "s.yaml:7:3: published: the sweep has no point with workers=32, a=x");
  published = figure("predicted", "", 1);
  published.column = "step_second";
  CHECK_THROWS_AS(compare(published, draw_of(3)), InputError);
}

TEST_CASE("a figure belongs to the point with the fewest further values, and to one alone",
          "[commands][errors]") {
  Scenario scenario = with(figure("predicted", "", 1));
  scenario.points[0].values = {value_of("workers", "16"), value_of("a", "x")};
  CHECK(compared_with_published(scenario, {0, 1}, draw_of(3)).front().forecast.median == Approx(3));
  scenario.points[1].values = {value_of("workers", "16"), value_of("a", "y")};
  CHECK_THROWS_WITH(
      compared_with_published(scenario, {0, 1}, draw_of(3)),
      "s.yaml:7:3: published: 2 points have workers=16, such as workers=16, a=x and workers=16, "
      "a=y; give more values");
}

TEST_CASE("a point without results is not compared", "[commands]") {
  CHECK(compared_with_published(with(figure("predicted", "", 1)), {0}, draw_of(3)).empty());
}

TEST_CASE("a point or a column that is not there is found before the run is over", "[commands][errors]") {
  Published published = figure("predicted", "", 2);
  published.column = "step_second";
  const Scenario scenario = with(published);
  const auto check = column_check(scenario);
  CHECK_NOTHROW(check(0, row_of(8, 1, 2)));  // another point
  CHECK_THROWS_WITH(
      check(1, row_of(16, 1, 2)),
      "s.yaml:7:3: published: results of this point have no number in a column \"step_second\"; did "
      "you mean \"step_seconds\"?");
  published.column = "efficiency";  // is there once all points are
  const Scenario scaled = with(published);
  CHECK_NOTHROW(column_check(scaled)(1, row_of(16, 1, 2)));
  published.point = {value_of("workers", "32")};
  CHECK_THROWS_AS(column_check(with(published)), InputError);
}
