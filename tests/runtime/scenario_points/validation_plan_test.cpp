#include "runtime/scenario_points/validation_plan.hpp"

#include <catch2/catch.hpp>

#include "planned_parts.hpp"
#include "runtime/scenario_points/step_times.hpp"
#include "small_training.hpp"
#include "validate/compare/point_comparison.hpp"

namespace stepcast::validation_plan_test {

TEST_CASE("points that cannot be run for real are refused with the reason", "[validate]") {
  const auto why = [](const std::string& strategy, int workers, int ranks) {
    return unsupported_in_real_run(plan_of(strategy, workers, 0, 2), ranks, false);
  };
  CHECK(why("{kind: synchronous, all_reduce: mpi}", 2, 2).empty());
  CHECK(why("{kind: synchronous, all_reduce: mpi}", 2, 4).empty());  // over a group of the ranks
  CHECK(why("{kind: synchronous, all_reduce: ring, compression: one_bit}", 2, 2).empty());
  CHECK(why("{kind: synchronous, compression: top_k}", 2, 2).empty());
  CHECK(why("{kind: synchronous, compression: one_bit}", 2, 2) ==
        "compressed gradients need all_reduce: ring in a real run");
  CHECK(why("{kind: synchronous, precision: mixed}", 2, 2) ==
        "gradients of other than 4 bytes per element (precision: mixed) are simulated only");
  CHECK(why("{kind: synchronous, streams: 2}", 2, 2) ==
        "communicators with several streams are simulated only");
  CHECK(why("{kind: synchronous}", 4, 2) == "it needs 4 ranks, servers included; give --ranks 4");
}

TEST_CASE("pipelines that kernels cannot run are refused with the reason", "[validate]") {
  const auto why = [](const std::string& options, int ranks, const std::string& first = "relu") {
    const PlannedParts planned(ranks, R"(
name: test
source: test
input: [6]
layers:
  - {name: fc1, kind: dense, units: 12}
  - {name: between, kind: )" + first + R"(}
  - {name: fc2, kind: dense, units: 12}
  - {name: loss, kind: mean_squared_error}
)",
                               "{kind: pipeline, " + options + "}", 4, 1);
    return unsupported_in_real_run(planned.plan, ranks, false);
  };
  CHECK(why("stages: 2, split_points: [fc2], zero: 1, micro_batches: 2", 4).empty());
  CHECK(why("stages: 2, split_points: [fc2], zero: 2, micro_batches: 2", 4).empty());
  CHECK(why("stages: 2, split_points: [fc2], recompute: true", 2).empty());
  CHECK(why("stages: 2, split_points: [fc2], recompute: true", 2, "dropout, rate: 0.1") ==
        "simulated only: recomputation of dropout, which would drop other elements the second time");
  CHECK(why("stages: 2, split_points: [fc2], precision: mixed", 2) ==
        "simulated only: activations of 2 bytes");
}

TEST_CASE("tensor-parallel stages that share a boundary tensor are refused with the layer", "[validate]") {
  const std::string text = R"(
name: block
source: test
input: [8]
layers:
  - {name: expand, kind: dense, units: 8}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 8}
  - {name: loss, kind: mean_squared_error}
)";
  const auto why = [&](const std::string& cut) {
    const PlannedParts planned(4, text, "{kind: pipeline, stages: 2, tensor: 2, split_points: [" + cut + "]}",
                               4, 1);
    return planned.plan.partition.simulated_only;
  };
  CHECK(why("contract") == "a stage boundary after layer gelu, whose output ranks share");
  CHECK(why("loss") == "");
}

}  // namespace stepcast::validation_plan_test

namespace stepcast::step_time_statistics_test {

TEST_CASE("a synchronous step lasts from last end to last end, and the first does not count", "[validate]") {
  // The slower worker changes; a rank that does not train reports nothing.
  const std::vector<std::vector<double>> ends{{5, 6, 8, 9}, {4, 7, 7.5, 10}, {}};  // 2, 1, 2
  CHECK(synchronous_step_seconds(ends, StepStatistic::median) == Approx(2));
  CHECK(synchronous_step_seconds(ends, StepStatistic::mean) == Approx(5.0 / 3));
  CHECK_THROWS_WITH(synchronous_step_seconds({{1}}, StepStatistic::mean),
                    "simulation.steps: expected at least 2 in a real run");
}

TEST_CASE("asynchronous steps are counted from each worker's first end", "[validate]") {
  // Until 10: four steps of 2 s of the one, two of 4 s of the other; a server ends none.
  CHECK(independent_step_seconds({}, {{2, 4, 6, 8, 10}, {2, 6, 10, 14}, {}}) ==
        Approx(2 / (1 / 2.0 + 1 / 4.0)));
  CHECK_THROWS_WITH(independent_step_seconds({}, {{1, 2}, {1}}),
                    "simulation.steps: expected at least 2 steps of each worker in a real run of workers "
                    "that step independently");
}

TEST_CASE("pairs whose intervals overlap say nothing about the order", "[validate]") {
  const auto comparison = [](double predicted, double measured, double spread) {
    PointComparison one;
    one.predicted = predicted;
    one.measured = measured;
    one.low = measured - spread;
    one.high = measured + spread;
    return one;
  };
  const SpeedOrder order =
      order_of({comparison(1, 1, 0.1), comparison(2, 1.15, 0.1), comparison(0.9, 2, 0.1)});
  CHECK(order.pairs == 2);
  CHECK(order.right == 0);
  CHECK(order_of({comparison(1, 1, 0.1), comparison(2, 3, 0.1)}).right == 1);
}

TEST_CASE("a point's measurement is the median or the mean of its kept samples", "[validate]") {
  Results predicted{"s", {}}, samples{"s", {}};
  Row row;
  row.set("point", std::string("a"));
  row.set("strategy", std::string("synchronous"));
  row.set("step_seconds", 1.1);
  predicted.rows.push_back(row);
  for (const double seconds : {1.0, 2.0, 0.5, 99.0}) {
    Row sample;
    sample.set("point", std::string("a"));
    sample.set("step_seconds", seconds);
    sample.set("kept", seconds < 50);
    samples.rows.push_back(sample);
  }
  const auto comparisons = compare_points(predicted, samples);
  REQUIRE(comparisons.size() == 1);
  CHECK(comparisons[0].measured == 1);
  CHECK(comparisons[0].error() == Approx(0.1));
  CHECK(comparisons[0].repeats == 3);
  CHECK(comparisons[0].disturbed == 1);
  const auto means = compare_points(predicted, samples, {.statistic = StepStatistic::mean});
  CHECK(means.at(0).measured == Approx(3.5 / 3));
  CHECK(means.at(0).low == Approx(0.5));
  CHECK(means.at(0).high == Approx(2));
}

TEST_CASE("a forecast is joined with a cluster's logs by the columns that identify points", "[validate]") {
  const auto row = [](std::int64_t workers, const char* strategy, double rate) {
    Row one;
    one.set("workers", workers);
    one.set("strategy", std::string(strategy));
    one.set("samples_per_second", rate);
    return one;
  };
  const Results predicted{"",
                          {row(8, "synchronous", 110), row(16, "synchronous", 200), row(16, "bmuf", 240),
                           row(16, "bmuf", 999), row(32, "bmuf", 400)}};
  const Results measured{"",
                         {row(16, "bmuf", 200), row(8, "synchronous", 90), row(8, "synchronous", 100),
                          row(8, "synchronous", 130), row(16, "synchronous", 0), row(64, "bmuf", 500)}};
  const auto comparisons =
      compare_points(predicted, measured, {{"workers", "strategy"}, "samples_per_second"});
  REQUIRE(comparisons.size() == 2);
  CHECK(comparisons[0].point == "workers=8, strategy=synchronous");
  CHECK(comparisons[0].measured == 100);
  CHECK(comparisons[0].repeats == 3);
  CHECK(comparisons[0].low == 90);
  CHECK(comparisons[0].high == 130);
  CHECK(comparisons[0].error() == Approx(0.1));
  CHECK(comparisons[1].point == "workers=16, strategy=bmuf");
  CHECK(comparisons[1].error() == Approx(0.2));
  CHECK(summary_lines(comparisons).size() == 4);  // two strategies, all, the order of one pair
  CHECK(compare_points(predicted, measured, {{"workers"}, "step_seconds"}).empty());
}

TEST_CASE("waiting is the compute time of the slowest rank of each step beyond the mean", "[validate]") {
  CHECK(waiting_seconds({{9, 1, 4}, {7, 3, 2}}, 2) ==
        Approx(1));  // (3 - 2 + 4 - 3) / 2; the first does not count
  CHECK(waiting_seconds({{2, 2}, {8, 2}}, 2) == 0);
  CHECK(waiting_seconds({{9, 1, 3}, {5, 3, 1}, {}}, 2) == Approx(1));  // the third rank is a server
  CHECK(waiting_seconds({{4}, {2}}, 2) == Approx(1));                  // a run of a single step
  CHECK(waiting_seconds({}, 2) == 0);
}

TEST_CASE("the compute time of a step is the mean over steps but the first and over workers", "[validate]") {
  CHECK(mean_compute_seconds({{9, 1, 3}, {9, 5, 7}, {}}, 2) == Approx(4));
  CHECK(mean_compute_seconds({{9, 1}, {9, 5, 7}}, 2) == Approx(3.5));  // workers that step independently
  CHECK(mean_compute_seconds({{4}, {2}}, 2) == Approx(3));
  CHECK(mean_compute_seconds({{}}, 1) == 0);
}

}  // namespace stepcast::step_time_statistics_test
