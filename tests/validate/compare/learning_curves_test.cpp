#include "validate/compare/learning_curves.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "validate/compare/point_comparison.hpp"

namespace stepcast::learning_curves_test {
namespace {

Row learned(const char* point, std::int64_t step, std::int64_t each, double seconds, double loss,
            double accuracy) {
  Row row;
  row.set("point", point);
  row.set("step", step);
  row.set("mini_batches_a_step", each);
  row.set("samples", 64.0 * step);
  row.set("seconds", seconds);
  row.set("loss", loss);
  row.set("accuracy", accuracy);
  return row;
}

Row forecast(const char* point, double seconds) {
  Row row;
  row.set("point", point);
  row.set("step_seconds", seconds);
  return row;
}

}  // namespace

TEST_CASE("a measured loss gets the forecast time of its step", "[validate][learning]") {
  const Results learning{"s",
                         {learned("a", 0, 1, 0, 2.5, 0.1), learned("a", 40, 1, 0.9, 0.5, 0.9),
                          learned("b", 0, 10, 0, 2.5, 0.1), learned("b", 40, 10, 1.1, 0.25, 0.95)}};
  const Results joined = with_forecast(learning, {"s", {forecast("a", 0.02), forecast("b", 0.25)}});
  CHECK(joined.rows[0].number("predicted_seconds") == 0);
  CHECK(*joined.rows[1].number("predicted_seconds") == Approx(0.8));
  CHECK(*joined.rows[3].number("predicted_seconds") == Approx(1.0));  // four blocks of ten

  const CurvePlot plot = loss_curves(joined);
  REQUIRE(plot.curves.size() == 2);
  CHECK(plot.curves[1].name == "b");
  CHECK(plot.curves[1].measured.back() == std::pair(1.1, 0.25));
  CHECK(plot.curves[1].forecast.back() == std::pair(1.0, 0.25));
  const auto script = curve_script(plot);
  REQUIRE(script);
  CHECK(script->data.find("$c1 << EOD\n0 2.5\n1.1 0.25\nEOD\n") != std::string::npos);
  CHECK(script->data.find("$d1 << EOD\n0 2.5\n1 0.25\nEOD\n") != std::string::npos);

  const auto lines = learning_lines(joined);
  REQUIRE(lines.size() == 2);
  CHECK(lines[0] ==
        "a: loss 2.5 to 0.5, accuracy 90.0 % after 40 mini-batches of a worker in 900 ms (forecast 800 ms); "
        "loss 0.5 after 900 ms (forecast 800 ms)");
}

TEST_CASE("points are named without what they share, and strategies by their kind and options",
          "[validate][learning]") {
  const auto names_of = [](const std::vector<const char*>& points) {
    std::vector<LearnedRun> runs;
    for (const char* point : points) runs.push_back({.point = point});
    std::vector<std::string> names;
    for (const LearnedPoint& point : learned_points(runs)) names.push_back(point.point);
    return names;
  };
  CHECK(names_of({"strategy={kind: bmuf, block_momentum: 0.5}, workers=2",
                  "strategy={kind: spatial, split: [2, 1]}, workers=2"}) ==
        std::vector<std::string>{"bmuf, block_momentum: 0.5", "spatial, split: [2, 1]"});
  CHECK(names_of({"strategy.kind=zero, learning.learning_rate=0.5",
                  "strategy.kind=bmuf, learning.learning_rate=1"}) ==
        std::vector<std::string>{"zero, learning_rate=0.5", "bmuf, learning_rate=1"});
}

TEST_CASE("a training that diverged has an infinite loss, and never reaches a loss", "[validate][learning]") {
  const Results learning{"s", {learned("a", 0, 1, 0, 2.5, 0.1), learned("a", 10, 1, 1, NAN, 0.1)}};
  const auto runs = learned_runs(learning, 0.1);
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].loss == HUGE_VAL);
  CHECK(!runs[0].seconds_to_target);
  CHECK(learned_points(runs)[0].loss == HUGE_VAL);
  CHECK(loss_curves(learning).curves[0].measured.size() == 1);
}

TEST_CASE("points are compared by when they reach the lowest loss that all of them reach",
          "[validate][learning]") {
  const Results learning{
      "s",
      {learned("strategy.kind=a, platform.net=slow, strategy.period=4, workers=1", 0, 1, 0, 2.5, 0.1),
       learned("strategy.kind=a, platform.net=slow, strategy.period=4, workers=1", 10, 1, 4, 0.5, 0.8),
       learned("strategy.kind=a, platform.net=slow, strategy.period=4, workers=1", 20, 1, 8, 0.75, 0.7),
       learned("strategy.kind=b, platform.net=slow, workers=8", 0, 1, 0, 2.5, 0.1),
       learned("strategy.kind=b, platform.net=slow, workers=8", 10, 1, 1, 0.6, 0.8),
       learned("strategy.kind=b, platform.net=slow, workers=8", 20, 1, 2, 0.2, 0.9)}};
  const double common = common_loss(learning);
  CHECK(common == 0.5);
  const auto all = learned_points(learned_runs(learning, common));
  REQUIRE(all.size() == 2);
  CHECK(all[0].point == "a, period=4, workers=1");
  CHECK(all[0].seconds_to_target == 4);
  CHECK(all[1].seconds_to_target == 2);
  CHECK(all[0].loss == 0.75);  // the last loss, not the lowest
  CHECK(*all[1].accuracy == 0.9);
}

TEST_CASE("a point with several seeds has medians, a range and a band", "[validate][learning]") {
  Results learning{"s", {}};
  const double final_loss[] = {0.4, 0.9, 0.5};
  for (int seed = 1; seed <= 3; ++seed) {
    for (const int step : {0, 10}) {
      Row row = learned("a", step, 1, step * 0.1 * seed, step == 0 ? 2.5 : final_loss[seed - 1], 0.5);
      row.set("seed", std::int64_t{seed});
      learning.rows.push_back(row);
    }
  }
  CHECK(common_loss(learning) == 0.9);
  const auto runs = learned_runs(learning, 0.6);
  REQUIRE(runs.size() == 3);
  CHECK(runs[2].seed == 3);
  CHECK(!runs[1].seconds_to_target);  // its loss stays above 0.6
  const auto points = learned_points(runs);
  REQUIRE(points.size() == 1);
  CHECK(points[0].seeds == 3);
  CHECK(points[0].loss == 0.5);
  CHECK(points[0].lowest_loss == 0.4);
  CHECK(points[0].highest_loss == 0.9);
  CHECK(*points[0].seconds_to_target == 3);  // the median of 1, 3 and never
  CHECK(*points[0].samples_to_target == 640);
  CHECK(!learned_points(learned_runs(learning, 0.45))[0].seconds_to_target);  // only one seed of three
  const CurvePlot plot = loss_curves(learning);
  REQUIRE(plot.curves.size() == 1);
  CHECK(plot.curves[0].measured.back() == std::pair(2.0, 0.5));
  REQUIRE(plot.curves[0].band.size() == 2);
  CHECK(plot.curves[0].band[1].low == 0.4);
  CHECK(plot.curves[0].band[1].high == 0.9);
  CHECK(curve_script(plot)->data.find("$b0 << EOD\n0 2.5 2.5\n2 0.4 0.9\nEOD\n") != std::string::npos);
}

TEST_CASE("an evaluation without a time is an error with its line", "[validate][learning][errors]") {
  Results learning{"s", {learned("a", 0, 1, 0, 2.5, 0.1), learned("a", 10, 1, 1, 0.5, 0.1)}};
  std::erase_if(learning.rows[1].cells, [](const auto& cell) { return cell.first == "seconds"; });
  CHECK_THROWS_WITH(learning_lines(learning), "learning.jsonl:2:1: seconds: expected a number, got nothing");
}

TEST_CASE("a curve of one point is not drawn", "[validate][learning]") {
  CHECK(!curve_script(loss_curves({"s", {learned("a", 0, 1, 0, 2.5, 0.1)}})));
}

namespace {

/// A training that reached the target after so many seconds, with 100 samples a second.
LearnedRun run(const char* point, std::int64_t seed, std::optional<double> seconds) {
  LearnedRun one{.point = point, .seed = seed, .mini_batches = 10, .seconds = 9, .samples = 900, .loss = 0.5};
  one.seconds_to_target = seconds;
  if (seconds) one.samples_to_target = 100 * *seconds;
  return one;
}

}  // namespace

TEST_CASE("forecast and real trainings of a seed are joined", "[validate][learning]") {
  const std::vector<LearnedRun> predicted{run("workers=1", 1, 2), run("workers=1", 2, std::nullopt)};
  const std::vector<LearnedRun> measured{run("workers=1", 1, 2.5), run("workers=1", 2, 4),
                                         run("workers=1", 3, 4)};
  const Results times = times_to_loss("s", 0.7, predicted, measured);
  REQUIRE(times.rows.size() == 2);  // the third was not forecast
  CHECK(times.rows[0].number("target_loss") == 0.7);
  CHECK(times.rows[0].number("predicted_seconds") == 2);
  CHECK(times.rows[0].number("measured_seconds") == 2.5);
  CHECK(times.rows[0].number("predicted_samples") == 200);
  CHECK(times.rows[1].number("seed") == 2);
  CHECK(!times.rows[1].number("predicted_seconds"));
  CHECK(times.rows[1].number("measured_seconds") == 4);
  CHECK(times.rows[1].number("predicted_loss") == 0.5);
}

TEST_CASE("the table compares medians over the seeds, where both reach the loss", "[validate][learning]") {
  const auto points = [](std::optional<double> one, std::optional<double> two) {
    return learned_points({run("workers=1", 1, one), run("workers=1", 2, one), run("workers=2", 1, two),
                           run("workers=2", 2, two)});
  };
  const Table table = times_to_loss_table(0.7, points(2, 1), points(2.5, std::nullopt));
  REQUIRE(table.rows.size() == 2);
  CHECK(table.columns[1].header == "time to loss 0.7");
  CHECK(table.rows[0] == std::vector<std::string>{"workers=1", "2.00 s", "2.50 s", "-20.0", "200", "250"});
  CHECK(table.rows[1] ==
        std::vector<std::string>{"workers=2", "1.00 s", "not reached", "", "100", "not reached"});
}
}  // namespace stepcast::learning_curves_test
