#include "report/results/published.hpp"

#include <catch2/catch.hpp>

#include "report/results/results.hpp"

using namespace stepcast;

namespace {

PublishedFigure figure(PublishedKind kind, std::optional<double> value) {
  return {.scenario = "s",
          .point = "p",
          .column = "step_seconds",
          .kind = kind,
          .value = value,
          .source = "paper"};
}

}  // namespace

TEST_CASE("the error of a forecast is predicted / published - 1", "[report]") {
  const auto row = compared(figure(PublishedKind::predicted, 0.25), {.median = 0.26, .ideal = 0.225});
  REQUIRE(row.error.has_value());
  CHECK(*row.error == Approx(0.04).epsilon(1e-12));
  CHECK(*row.ideal_scaling_error == Approx(-0.1).epsilon(1e-12));
  CHECK_FALSE(row.inside.has_value());
}

TEST_CASE("a published value is inside its interval, ends included", "[report]") {
  const auto predicted = figure(PublishedKind::predicted, 0.25);
  CHECK(*compared(predicted, {.median = 0.3, .low = 0.25, .high = 0.4}).inside);
  CHECK(*compared(predicted, {.median = 0.2, .low = 0.1, .high = 0.25}).inside);
  CHECK_FALSE(*compared(predicted, {.median = 0.3, .low = 0.26, .high = 0.4}).inside);
}

TEST_CASE("without an interval the tolerance decides", "[report]") {
  auto predicted = figure(PublishedKind::predicted, 100);
  predicted.tolerance = 0.05;
  CHECK(*compared(predicted, {.median = 104}).inside);
  CHECK_FALSE(*compared(predicted, {.median = 94}).inside);
}

TEST_CASE("a bound is kept or broken, a trend holds or not", "[report]") {
  auto bound = figure(PublishedKind::bound, 100);
  bound.relation = Relation::at_most;
  CHECK(*compared(bound, {.median = 100}).inside);
  CHECK_FALSE(*compared(bound, {.median = 101}).inside);
  bound.tolerance = 0.02;
  CHECK(*compared(bound, {.median = 101}).inside);
  bound.relation = Relation::at_least;
  CHECK_FALSE(*compared(bound, {.median = 97}).inside);

  auto trend = figure(PublishedKind::trend, std::nullopt);
  trend.ordering = "ring above tree";
  CHECK(*compared(trend, {.share = 0.9}).inside);
  CHECK_FALSE(*compared(trend, {.share = 0.05}).inside);
  CHECK_FALSE(compared(trend, {.share = 0.89}).inside.has_value());
  CHECK_FALSE(compared(trend, {}).error.has_value());
}

TEST_CASE("a trend is printed with the ratio of its points, where there is one", "[report]") {
  auto trend = figure(PublishedKind::trend, std::nullopt);
  trend.ordering = "less than the other point";
  const auto text = [&](const Forecast& forecast) {
    return published_table({compared(trend, forecast)}).rows.front()[3];
  };
  CHECK(text({.share = 1}) == "holds");
  CHECK(text({.median = 0.8, .share = 0.95}) == "holds (95 % of draws): x 0.8");
  CHECK(text({.median = 1.2, .low = 0.9, .high = 1.5, .share = 0}) == "does not hold: x 1.2 [0.9 .. 1.5]");
  CHECK(text({.median = 0.9, .low = 0.7, .high = 1.1, .share = 0.6}) ==
        "open (60 % of draws): x 0.9 [0.7 .. 1.1]");
  const auto open = compared(trend, {.median = 0.9, .share = 0.6});
  CHECK(published_table({open}).rows.front()[5] == "open");
  CHECK(to_results("s", {open}).rows.front().text("inside") == "open");
}

TEST_CASE("a bound says by what factor it is kept", "[report]") {
  auto bound = figure(PublishedKind::bound, 2);
  bound.relation = Relation::at_least;
  CHECK(margin(compared(bound, {.median = 3})) == 1.5);
  CHECK(published_table({compared(bound, {.median = 3})}).rows.front()[5] == "yes, x 1.5");
  bound.relation = Relation::at_most;
  CHECK(margin(compared(bound, {.median = 4})) == 0.5);
  CHECK(published_table({compared(bound, {.median = 4})}).rows.front()[5] == "no, x 0.5");
  CHECK_FALSE(margin(compared(bound, {.median = 0})));
  CHECK_FALSE(margin(compared(figure(PublishedKind::predicted, 2), {.median = 3})));
}

TEST_CASE("a figure counts once, and not if its forecast was changed after a look", "[report]") {
  auto tuned = figure(PublishedKind::predicted, 100);
  tuned.tuned = "the range was widened";
  auto again = figure(PublishedKind::predicted, 100);
  again.counted = false;
  const auto summary = summarized({compared(figure(PublishedKind::predicted, 100), {.median = 101}),
                                   compared(tuned, {.median = 120, .low = 90, .high = 130}),
                                   compared(again, {.median = 150})});
  CHECK(summary.error.count == 1);
  CHECK(summary.error.maximum == Approx(0.01));
  CHECK(summary.tuned.count == 1);
  CHECK(summary.tuned_inside == 1);
  CHECK_THAT(to_string(summary),
             Catch::Matchers::EndsWith("\nnot counted: 1 figure of forecasts that were changed "
                                       "after a look at the first result: |error| median "
                                       "20.0 %; 1 inside the interval"));
}

TEST_CASE("the table of published figures names points by the ends of their keys", "[report]") {
  auto one = figure(PublishedKind::bound, 2);
  one.point =
      "strategy.split=4, workers=16 / strategy.split=[4, 2], platform.messages.inside_node[0].overhead=5 us";
  CHECK(published_table({compared(one, {.median = 3})}).rows.front()[0] ==
        "split=4, workers=16 / split=[4, 2], overhead=5 us");
}

TEST_CASE("published.csv has the documented columns", "[report]") {
  auto fitted = figure(PublishedKind::fitted, 0.2318);
  fitted.tolerance = 0.01;
  auto bound = figure(PublishedKind::bound, 1);
  bound.relation = Relation::at_most;
  const auto text = to_csv(to_results("s", {compared(fitted, {.median = 0.2318, .low = 0.23, .high = 0.24}),
                                            compared(bound, {.median = 0.5, .ideal = 0.25})}));
  CHECK(text ==
        "scenario,point,column,kind,relation,predicted,low,high,published,inside,share_of_draws,margin,error,"
        "tolerance,ideal_scaling_error,counted,tuned,source\n"
        "s,p,step_seconds,fitted,=,0.2318,0.23,0.24,0.2318,true,,,0,0.01,,true,,paper\n"
        "s,p,step_seconds,bound,<=,0.5,,,1,true,,2,-0.5,,-0.75,true,,paper\n");
}

TEST_CASE("only predicted rows enter the statistics", "[report]") {
  std::vector<PublishedRow> rows;
  for (const double predicted : {101.0, 98.0, 103.0, 110.0}) {
    rows.push_back(compared(figure(PublishedKind::predicted, 100),
                            {.median = predicted, .low = 95, .high = 105, .ideal = 120}));
  }
  rows.push_back(compared(figure(PublishedKind::predicted, 100), {.median = 106, .low = 101, .high = 110}));
  rows.push_back(compared(figure(PublishedKind::fitted, 100), {.median = 900}));
  rows.push_back(compared(figure(PublishedKind::bound, 100), {.median = 500}));
  const auto summary = summarized(rows);
  CHECK(summary.error.count == 5);
  CHECK(summary.error.mean == Approx(0.044).epsilon(1e-9));  // of 1, 2, 3, 6, 10 %
  CHECK(summary.error.median == Approx(0.03).epsilon(1e-9));
  CHECK(summary.error.p90 == Approx(0.084).epsilon(1e-9));  // 6 + 0.6 (10 - 6)
  CHECK(summary.error.maximum == Approx(0.10).epsilon(1e-9));
  CHECK(summary.with_interval == 5);
  CHECK(summary.inside_interval == 4);
  CHECK(summary.ideal_scaling.count == 4);
  CHECK(
      to_string(summary) ==
      "5 predicted figures: |error| mean 4.4 %, median 3.0 %, 90th percentile 8.4 %, maximum 10.0 %; 4 of 5 "
      "inside the interval; ideal scaling: median 20.0 %");
  CHECK(to_string(summarized(std::vector<PublishedRow>{})) == "no blind predicted figure to compare with");
}

TEST_CASE("every experiment counts once: by the median of its rows", "[report]") {
  std::vector<PublishedRow> rows;
  const auto add = [&rows](const char* scenario, double predicted, std::optional<double> ideal) {
    PublishedFigure one = figure(PublishedKind::predicted, 100);
    one.scenario = scenario;
    rows.push_back(compared(one, {.median = predicted, .ideal = ideal}));
  };
  for (const double predicted : {101, 102, 103}) add("many", predicted, 110);  // counts as 2 %
  add("bad", 150, {});
  add("fair", 94, 120);
  const auto summary = summarized(rows);
  CHECK(summary.by_experiment.count == 3);
  CHECK(summary.by_experiment.median == Approx(0.06));
  CHECK(summary.ideal_by_experiment.count == 2);
  CHECK(summary.ideal_by_experiment.median == Approx(0.15));
  CHECK_THAT(
      to_string(summary),
      Catch::Matchers::EndsWith(
          "\neach experiment counted once, by the median |error| of its rows: median over 3 experiments 6.0 "
          "%; ideal scaling, which predicts 2 of them: 15.0 %"));
}
