#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

const std::string kRun = "name: s\nworkers: 1\n";

std::string published(const std::string& figure) {
  return kRun + "published:\n  - {point: {}, column: memory_bytes, source: x, " + figure + "}\n";
}

}  // namespace

TEST_CASE("a calibration keeps its bracket, point and figure in SI units", "[scenarios]") {
  const Scenario scenario = scenario_of(
      kRun +
      "calibrate: [{key: k, range: [0 ms, 5 ms], point: {w: 8}, column: step_seconds, value: 231.8 ms, "
      "source: x}]\n");
  const Measurement& feed = scenario.calibrations.at(0);
  CHECK(feed.range.high == 5);
  CHECK(feed.range.unit == " ms");
  CHECK(feed.point.at(0).path == "w");
  CHECK(feed.value == Approx(0.2318).epsilon(1e-12));
  CHECK(feed.over.empty());
  const Scenario ratio = scenario_of(
      kRun +
      "calibrate: [{key: k, range: [0, 5], point: {w: 8}, over: {w: 1}, column: c, value: 2, source: x}]\n");
  CHECK(ratio.calibrations.at(0).over.at(0).value.text == "1");
}

TEST_CASE("an invalid calibration is refused with place and reason", "[scenarios][errors]") {
  const std::string start = kRun + "calibrate: [{key: k, range: [0 s, 1 s], column: step_seconds, ";
  CHECK_THROWS_WITH(scenario_of(start + "value: 2 s, source: x}]\n"),
                    "s.yaml:3:13: calibrate[0].point: missing (expected the values of one point)");
  CHECK_THROWS_WITH(scenario_of(start + "point: {}, source: x}]\n"),
                    "s.yaml:3:13: calibrate[0].value: missing (expected the figure to fit)");
  CHECK_THROWS_WITH(scenario_of(start + "point: {}, value: 2 s}]\n"),
                    "s.yaml:3:13: calibrate[0].source: missing (expected where the figure is from)");
  CHECK_THROWS_WITH(
      scenario_of(start + "point: {}, value: 2 pints, source: x}]\n"),
      "s.yaml:3:81: calibrate[0].value: expected a number, or one with a unit of time, got \"2 pints\"");
}

TEST_CASE("an entry of measured with a key is a calibration, and calibrate takes no other", "[scenarios]") {
  const std::string figure = "point: {w: 8}, column: step_seconds, value: 2 s, source: x";
  const std::string fitted = "[{key: k, range: [0 s, 1 s], " + figure + "}]\n";
  const Scenario one = scenario_of(kRun + "measured: " + fitted),
                 other = scenario_of(kRun + "calibrate: " + fitted);
  CHECK(one.measurements.empty());
  REQUIRE(one.calibrations.size() == 1);
  CHECK(one.calibrations[0].range.key == other.calibrations.at(0).range.key);
  CHECK(one.calibrations[0].value == other.calibrations[0].value);
  CHECK(scenario_of(kRun + "measured: [{" + figure + "}]\n").measurements.size() == 1);
  CHECK_THROWS_WITH(scenario_of(kRun + "calibrate: [{" + figure + "}]\n"),
                    "s.yaml:3:13: calibrate[0].key: missing (expected the key of an uncertain input)");
  CHECK_THROWS_WITH(scenario_of(kRun + "measured: [{range: [1, 2], " + figure + "}]\n"),
                    "s.yaml:3:20: measured[0].range: only valid with key, an input that is fitted");
  CHECK_THROWS_WITH(scenario_of(kRun + "measured: [{key: k, range: [1, 2], spread: 0.1, " + figure + "}]\n"),
                    "s.yaml:3:44: measured[0].spread: not valid with key, which is fitted exactly");
}

TEST_CASE("a published figure keeps its kind, relation and tolerance", "[scenarios]") {
  const Scenario bound =
      scenario_of(published("kind: bound, relation: at_least, value: 3 MiB, tolerance: 0.5"));
  CHECK(bound.published.at(0).relation == "at_least");
  CHECK(bound.published.at(0).value == 3.0 * 1024 * 1024);
  CHECK(bound.published.at(0).tolerance == 0.5);
  const Scenario trend = scenario_of(published("kind: trend, relation: more_than, over: {w: 2}"));
  CHECK(trend.published.at(0).over.at(0).value.text == "2");
}

TEST_CASE("a published figure says whether it counts and what was changed after a look", "[scenarios]") {
  const auto figure = [](const std::string& more) {
    return scenario_of(published("kind: bound, relation: at_most, value: 1 GiB" + more)).published.at(0);
  };
  CHECK(figure("").counted);
  CHECK(figure("").tuned.empty());
  CHECK_FALSE(figure(", counted: false").counted);
  CHECK(figure(", tuned: a range was widened").tuned == "a range was widened");
  CHECK_THROWS_AS(figure(", counted: maybe"), InputError);
}

TEST_CASE("a figure has the unit of its column", "[scenarios][errors]") {
  const auto figure = [](const std::string& column, const std::string& value, const std::string& over = "") {
    return scenario_of(kRun + "published:\n  - {point: {}, kind: predicted, source: x, column: " + column +
                       over + ", value: " + value + "}\n")
        .published.at(0)
        .value;
  };
  CHECK(figure("step_seconds", "3 ms") == Approx(0.003).epsilon(1e-12));
  CHECK(figure("sweep_minutes", "172 min") == Approx(172).epsilon(1e-12));
  CHECK(figure("training_hours_with_faults", "90 min") == 1.5);
  CHECK(figure("sweep_minutes", "172") == 172);
  CHECK_THROWS_WITH(
      figure("step_seconds", "1 MB"),
      "s.yaml:4:74: published[0].value: expected a number, or one with a unit of time, got \"1 MB\"");
  CHECK_THROWS_WITH(figure("step_seconds", "0.1sec"),
                    Catch::EndsWith("got \"0.1sec\"; did you mean \"0.1 s\"?"));
  CHECK_THROWS_WITH(figure("samples_per_second", "1 s"),
                    "s.yaml:4:80: published[0].value: expected a number, because the unit of column "
                    "samples_per_second is unknown, got "
                    "\"1 s\"");
  CHECK_THROWS_WITH(figure("step_seconds", "2 s", ", over: {workers: 1}"),
                    "s.yaml:4:94: published[0].value: expected a number, because it is the ratio of two "
                    "points, got \"2 s\"");
}

TEST_CASE("kind: fitted needs a calibration", "[scenarios][errors]") {
  const std::string fitted =
      kRun + "published:\n  - {point: {}, kind: fitted, source: x, column: a, value: 1}\n";
  const std::string feed =
      "calibrate:\n  - {key: a, range: [1, 2], point: {}, column: a, value: 1, source: x}\n";
  CHECK(scenario_of(fitted + feed).published.at(0).kind == "fitted");
  const std::string why = "fitted needs a calibrate entry in this scenario; add one or use predicted";
  CHECK_THROWS_WITH(scenario_of(fitted), "s.yaml:4:23: published[0].kind: " + why);
  CHECK_THROWS_WITH(scenario_of(fitted + feed, {"calibrate=null"}), "s.yaml:4:23: published[0].kind: " + why);
}

TEST_CASE("an invalid published figure is refused with place and reason", "[scenarios][errors]") {
  const auto refused = [](const std::string& figure, const std::string& message) {
    CHECK_THROWS_WITH(scenario_of(published(figure)), "s.yaml:" + message);
  };
  refused("kind: measured, value: 1",
          "4:56: published[0].kind: expected one of predicted, fitted, bound, trend, got \"measured\"");
  refused("value: 1", "4:5: published[0].kind: missing (expected predicted, fitted, bound or trend)");
  refused("kind: predicted", "4:5: published[0].value: missing (expected the published figure)");
  refused("kind: bound, value: 1", "4:5: published[0].relation: missing (expected at_most or at_least)");
  refused("kind: bound, relation: atmost, value: 1",
          "4:73: published[0].relation: expected one of at_most, at_least, got \"atmost\"; did you mean "
          "\"at_most\"?");
  refused("kind: trend, relation: less_than",
          "4:5: published[0].over: missing (expected the point that it is "
          "compared with)");
  refused("kind: trend",
          "4:5: published[0].relation: missing (expected less_than or more_than, of the point `over`)");
  refused("kind: predicted, value: 1, tolerance: 11",
          "4:88: published[0].tolerance: expected a number from 0 to 10, got \"11\"");
}

TEST_CASE("an assumption may be one of several values, equally likely", "[scenarios]") {
  const Scenario scenario =
      scenario_of(kRun + "assumed: [{key: strategy.overlap, choices: [true, false], why: unknown}]\n");
  const Assumption& one = scenario.assumptions.at(0);
  CHECK(assumed_value(one, 0).value.text == "true");
  CHECK(assumed_value(one, 0.49).value.text == "true");
  CHECK(assumed_value(one, 0.5).value.text == "false");
  CHECK(assumed_value(one, 0.999).value.text == "false");
  CHECK(range_text(one) == "one of true, false");
}

TEST_CASE("choices are refused beside a range, and alone", "[scenarios][errors]") {
  CHECK_THROWS_WITH(scenario_of(kRun + "assumed: [{key: k, choices: [1, 2], range: [1, 2], why: x}]\n"),
                    Catch::Contains("assumed[0].range: not valid with choices"));
  CHECK_THROWS_WITH(scenario_of(kRun + "assumed: [{key: k, choices: [1], why: x}]\n"),
                    Catch::Contains("assumed[0].choices: expected two or more values"));
}
