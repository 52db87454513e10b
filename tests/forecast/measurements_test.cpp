#include "forecast/measured/measurements.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "forecast/discrepancy.hpp"
#include "forecast/draws/weighted_draws.hpp"
#include "forecast/measured/measured_lines.hpp"
#include "forecast/posterior.hpp"
#include "forecast/summary.hpp"
#include "report/statistics/statistics.hpp"
#include "tests/report/temporary_folder.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

Scenario with_points(const std::string& text, const std::vector<std::string>& settings = {}) {
  Library library;
  return with_measured_points(scenario_of(text, settings), library);
}

const std::string kRing =
    "name: ring\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: ethernet-cpu\n"
    "strategy: {kind: synchronous}\nsimulation: {steps: 2}\nuncertainty: none\nsweep: {workers: [2, 4]}\n";
const std::string kBandwidth =
    "assumed: [{key: platform.network.bandwidth, range: [0.2 GB/s, 2 GB/s], law: log-uniform, why: "
    "unknown}]\n";

std::string measured(double step, const std::string& more = "") {
  return "measured: [{point: {workers: 2}, column: step_seconds, value: " + std::to_string(step) + more +
         "}]\n";
}

/// The forecast of all points; the compute factor is set, so that no measurement is fed in.
Simulations learned(const std::string& text, int processes = 1, int draws = 16) {
  const Scenario scenario = with_points(text, {"strategy.compute_factor=1"});
  ForecastOptions options;
  options.processes = processes;
  options.draws = draws;
  for (std::size_t i = 0; i < scenario.points.size(); ++i) options.points.push_back(i);
  options.what_if = false;
  Library library;
  return forecast(scenario, library, options);
}

double step_with_bandwidth(const std::string& bandwidth, std::size_t point) {
  return *learned(kRing + "set: {platform.network.bandwidth: " + bandwidth + "}\n")
              .rows[0][point]
              .number("step_seconds");
}

}  // namespace

TEST_CASE("a measured step finds the bandwidth, and with it the step of more workers", "[forecast]") {
  const double at_two = step_with_bandwidth("0.5 GB/s", 0), at_four = step_with_bandwidth("0.5 GB/s", 1);
  const Simulations all = learned(kRing + kBandwidth + measured(at_two));
  CHECK(all.second_round);
  const auto four = forecast_interval(over_draws(all, 1, "step_seconds"));
  CHECK(four.median == Approx(at_four).epsilon(0.02));
  CHECK(four.low < four.high);
  const auto before = forecast_interval(over_draws(learned(kRing + kBandwidth), 1, "step_seconds"));
  CHECK(four.high - four.low < 0.2 * (before.high - before.low));
}

TEST_CASE("draws with measurements are the same in any number of processes", "[forecast]") {
  const std::string text = kRing + kBandwidth + measured(step_with_bandwidth("0.5 GB/s", 0));
  const Simulations one = learned(text, 1), three = learned(text, 3);
  CHECK(one.inputs == three.inputs);
  CHECK(over_draws(one, 1, "step_seconds") == over_draws(three, 1, "step_seconds"));
}

TEST_CASE("a wide spread of a measurement leaves the draws as they are", "[forecast]") {
  const Simulations all = learned(kRing + kBandwidth + measured(1, ", spread: 1"));
  CHECK_FALSE(all.second_round);
  CHECK(all.effective_draws > 12);
}

TEST_CASE("a measured point is added to the sweep, and the smallest step is fed in", "[forecast]") {
  const Scenario scenario =
      with_points(kRing +
                  "measured: [{point: {workers: 3}, column: step_seconds, value: 1}, {point: {workers: 1}, "
                  "column: samples_per_second, value: 100, spread: 0.01, source: log}]\n");
  REQUIRE(scenario.points.size() == 4);
  CHECK(scenario.points[2].name == "workers=3");
  REQUIRE(scenario.calibrations.size() == 1);
  CHECK(scenario.calibrations[0].range.key == "strategy.compute_factor");
  CHECK(scenario.calibrations[0].value == 100);
  CHECK(scenario.measurements.size() == 1);
  CHECK_THROWS_WITH(with_points(kRing + "measured: [{point: {workers: 2}, column: speedup, value: 2}]\n"),
                    Catch::Matchers::Contains("measured: expected a column of one point alone, got speedup"));
}

TEST_CASE("a measured step that is mostly communication says nothing about layers", "[forecast]") {
  const auto fitted = [](const std::string& bandwidth) {
    return with_points(kRing + "set: {platform.network.bandwidth: " + bandwidth + "}\n" + measured(1));
  };
  CHECK(fitted("100 GB/s").calibrations.size() == 1);
  const Scenario slow = fitted("1 MB/s");
  CHECK(slow.calibrations.empty());
  CHECK(slow.measurements.size() == 1);
}

TEST_CASE("a measured point has what the whole sweep has, and must say what the sweep varies", "[forecast]") {
  const auto with = [](const std::string& point) {
    return with_points(kRing + "measured: [{point: " + point + ", column: step_seconds, value: 1}]\n",
                       {"sweep={workers: [2, 4], global_batch: [64], strategy.bucket: [1 MB, 2 MB]}"});
  };
  const Scenario added = with("{workers: 8, strategy.bucket: 1 MB}");
  REQUIRE(added.points.size() == 5);
  CHECK(point_name(added.calibrations.front().point) == "workers=8, strategy.bucket=1 MB, global_batch=64");
  CHECK(with("{workers: 2, strategy.bucket: 1 MB}").points.size() == 4);
  CHECK_THROWS_WITH(
      with("{workers: 2}"),
      Catch::Matchers::Contains(
          "measured: workers=2, global_batch=64: expected a value of strategy.bucket too, which "
          "the sweep varies"));
}

namespace {

std::vector<Measurement> measurements_in(const std::filesystem::path& file) {
  return measurements_of({file.string(), read_runs({"", file.string()})}, scenario_of(kRing));
}

}  // namespace

TEST_CASE("a row of a CSV file is one step and its communication", "[forecast]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "runs.csv";
  write_atomically(file,
                   "workers,step_seconds,samples_per_second,communication_seconds,spread,source\n"
                   "2,0.5,256,0.1,0.02,log\n4,,500,,,\n");
  const auto all = measurements_in(file);
  REQUIRE(all.size() == 3);
  CHECK(all[0].column == "step_seconds");
  CHECK(all[0].spread == 0.02);
  CHECK(all[1].column == "communication_seconds");
  CHECK(all[2].column == "samples_per_second");
  CHECK(all[2].value == 500);
  write_atomically(file,
                   "point,step_seconds,kept\nworkers=2,0.4,true\nworkers=2,0.6,true\nworkers=2,9,false\n"
                   "workers=4,0.5,true\n");
  const auto repeats = measurements_in(file);  // as validate writes them
  REQUIRE(repeats.size() == 2);
  CHECK(point_name(repeats[0].point) == "workers=2");
  CHECK(repeats[0].value == Approx(0.5));
  CHECK(repeats[0].spread == Approx(1.2533 * 0.1 / 0.5));  // two repeats: deviation 0.1414 / sqrt 2
  CHECK(repeats[1].spread == 0);
  write_atomically(file, "workers,point\n2,a\n");
  CHECK_THROWS_AS(measurements_in(file), InputError);
}

TEST_CASE("columns of numbers from which nothing is learned are named", "[forecast]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "runs.csv";
  write_atomically(file,
                   "\xEF\xBB\xBFworkers,samples_per_second,step_seconds,memory_bytes,host_seconds,loss,date\n"
                   "2,256,0.5,8e9,0.1,2.5,monday\n");
  const MeasuredRuns runs{file.string(), read_runs({"", file.string()})};
  CHECK(unused_columns_note(runs, scenario_of(kRing)) ==
        "note: " + file.string() + ": nothing is learned from step_seconds (follows from the step), loss");
  CHECK(measurements_in(file).size() == 3);
  write_atomically(file, "workers,step_seconds\n2,0.5\n");
  CHECK(unused_columns_note({file.string(), read_runs({"", file.string()})}, scenario_of(kRing)).empty());
}

TEST_CASE("measured runs with a unit, a wide spread or no point are refused with the file's name",
          "[errors]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "runs.csv";
  const auto refused = [&](const std::string& text, const std::string& error) {
    write_atomically(file, text);
    CHECK_THROWS_WITH(
        [&] {
          Scenario scenario = scenario_of(kRing);
          scenario.measurements = measurements_in(file);
          Library library;
          with_measured_points(std::move(scenario), library);
        }(),
        Catch::Contains(file.string() + ": " + error));
  };
  refused("workers,memory_bytes\n2,16 GB\n",
          "memory_bytes: expected numbers above 0, without a unit, got \"16 GB\"");
  refused("workers,step_seconds\n2,0\n", "step_seconds: expected numbers above 0, without a unit, got \"0\"");
  refused("workers,step_seconds,spread\n2,1,5\n", "spread: expected a number from 0 to 1, got 5");
  refused("gpus,step_seconds\n2,1\n", "measured: expected a value of workers too, which the sweep varies");
  refused("workers,step_secnds\n2,1\n", "expected a CSV file with numbers in a column such as");
  refused("workers,mfu\n2,0.4\n",
          "measured: results of workers=2 have no number above 0 in the column \"mfu\"");
}

TEST_CASE("a measured part of a step that the simulation has hidden is compared with a hundredth of the step",
          "[forecast]") {
  Scenario scenario = scenario_of(kRing);
  Measurement one;
  one.point = scenario.points.front().values;
  one.column = "exposed_communication_seconds";
  one.value = 0.03;
  scenario.measurements = {one};
  Row row;
  row.set("step_seconds", 1.0);
  row.set(one.column, 0.0);
  CHECK(residuals(scenario, {row, {}}).front() == Approx(std::log(4)));
  CHECK_FALSE(measures_steps(scenario));
  scenario.measurements.front().column = "step_seconds";
  CHECK(measures_steps(scenario));
}

TEST_CASE("a measurement that is equal in all draws is said to teach nothing", "[forecast]") {
  Scenario scenario = scenario_of(kRing);
  Measurement one;
  one.point = scenario.points.front().values;
  one.column = "compute_seconds";
  one.value = 0.5;
  scenario.measurements = {one};
  Simulations all;
  all.inputs = {{}, {}};
  Row row;
  row.set("compute_seconds", 1.0);
  all.rows.assign(2, std::vector<Row>(scenario.points.size(), row));
  CHECK(measured_lines(scenario, all).back().ends_with("so nothing is learned from it"));
  all.rows[1][0].set("compute_seconds", 1.1);
  CHECK(measured_lines(scenario, all).back().ends_with("]"));
}

TEST_CASE("a default range whose draws lie at an end is asked about in words", "[forecast]") {
  Scenario scenario = scenario_of(kRing);
  Assumption nic;
  nic.key = "factors.between_servers_bandwidth";
  nic.low = 0.5;
  nic.high = 1;
  scenario.assumptions = {nic};
  Measurement one;
  one.point = scenario.points.front().values;
  one.column = "step_seconds";
  one.value = 1;
  scenario.measurements = {one};
  Simulations all;
  all.effective_draws = 4;
  all.inputs = {{0.01}, {0.02}, {0.03}, {0.04}};
  Row row;
  row.set("step_seconds", 1.0);
  all.rows.assign(4, std::vector<Row>(scenario.points.size(), row));
  CHECK(measured_lines(scenario, all).back().find("is GPUDirect on") != std::string::npos);
}

namespace {

/// The step time at a point of 8, 16 and 64 workers, of which 8 are fed in. Simulated steps take 1 s.
Quantiles step_of_servers(const std::string& more, std::size_t point) {
  const Scenario scenario = scenario_of(
      "name: servers\nmodel: small-cnn\ntrace: derived\nplatform: dgx1v\nset: {platform.nodes: 8}\n"
      "batch_per_worker: 64\nstrategy: {kind: synchronous}\nsweep: {workers: [8, 16, 64]}\n"
      "calibrate: [{key: strategy.compute_factor, range: [0.1, 10], point: {workers: 8}, column: "
      "step_seconds, value: 1, source: s}]\n" +
      more);
  Simulations all;
  all.inputs = {{}};
  all.rows = {std::vector<Row>(3)};
  for (std::size_t i = 0; i < 3; ++i) {
    all.rows[0][i].set("devices", std::int64_t{i == 0 ? 8 : i == 1 ? 16 : 64});
    all.rows[0][i].set("step_seconds", 1.0);
    all.rows[0][i].set("compute_seconds", 0.1);
    all.rows[0][i].set("communication_seconds", 0.1);
    all.rows[0][i].set("exposed_communication_seconds", 0.1);
  }
  Library library;
  if (scenario.measurements.empty()) add_discrepancy(scenario, {0, 1, 2}, library, all);
  if (!scenario.measurements.empty()) learn_errors(scenario, {0, 1, 2}, library, all);
  return forecast_interval(predictive_values(all, point, "step_seconds"));
}

const std::string kSlower = "measured: [{point: {workers: 16}, column: step_seconds, value: 1.2}]\n";

}  // namespace

TEST_CASE("the error of a measured point is carried over to larger ones", "[forecast]") {
  const auto before = step_of_servers("", 2), after = step_of_servers(kSlower, 2),
             at_measured = step_of_servers(kSlower, 1);
  CHECK(at_measured.median == Approx(1.2).epsilon(0.005));
  CHECK(at_measured.high - at_measured.low < 0.03);
  CHECK(after.median > 1.15);
  CHECK(before.median < 1.1);
  CHECK(step_of_servers(kSlower, 0).low == 1);  // fed in
}

TEST_CASE("a second point that the simulation meets leaves a narrower forecast than one that it misses",
          "[forecast]") {
  const auto width = [](double value) {
    const auto step = step_of_servers(
        "measured: [{point: {workers: 16}, column: step_seconds, value: " + std::to_string(value) + "}]\n",
        2);
    return std::log(step.high / step.low);
  };
  Library library;
  const double misfit = shipped_discrepancy(library).measured.misfit;
  const auto factor = [&](double value) { return 1 + std::log(value) / misfit; };
  CHECK(width(1.03) / width(1.0001) == Approx(factor(1.03)).epsilon(0.1));
  CHECK(width(1.09) / width(1.03) == Approx(factor(1.09) / factor(1.03)).epsilon(0.15));
}

TEST_CASE("systematic resampling takes every draw as often as its weight says", "[forecast]") {
  CHECK(resampled({0.25, 0.5, 0, 0.25}, 4) == std::vector<std::size_t>{0, 1, 1, 3});
  CHECK(effective_draws({0.5, 0.5, 0, 0}) == Approx(2));
  CHECK(weights_of({0, std::log(3.0)})[1] == Approx(0.75));
}

TEST_CASE("layouts have errors of their own, and a layout that was measured says most about itself",
          "[forecast]") {
  const Scenario scenario = scenario_of(
      "name: layouts\nmodel: small-cnn\ntrace: derived\nplatform: dgx1v\nset: {platform.nodes: 2, "
      "strategy.compute_factor: 1}\nbatch_per_worker: 64\nstrategy: {kind: synchronous}\nsweep: {workers: "
      "[8, "
      "16], strategy.accumulation: [1, 2]}\nmeasured: [{point: {workers: 8, strategy.accumulation: 1}, "
      "column: "
      "step_seconds, value: 1.2}]\n");
  Simulations all;
  all.inputs = {{}};
  all.rows = {std::vector<Row>(4)};
  for (std::size_t i = 0; i < 4; ++i) {
    const bool larger = scenario.points[i].name.find("workers=16") != std::string::npos;
    all.rows[0][i].set("devices", std::int64_t{larger ? 16 : 8});
    all.rows[0][i].set("step_seconds", 1.0);
  }
  Library library;
  learn_errors(scenario, {0, 1, 2, 3}, library, all);
  const auto width = [&](const std::vector<Assignment>& values) {
    const std::size_t point = matching_point(scenario, values).value();
    const auto interval = forecast_interval(predictive_values(all, point, "step_seconds"));
    return interval.high - interval.low;
  };
  const auto& measured = scenario.measurements.front().point;
  std::vector<Assignment> larger = measured, other = measured;
  larger[0].value.text = "16";
  other[1].value.text = "2";
  CHECK(width(measured) < 0.05);
  CHECK(width(larger) < 0.7 * width(other));  // of the same layout
}

TEST_CASE(
    "a measured layout beside one that is fed in says half of its error of a third, and nothing of the level",
    "[forecast]") {
  const Scenario scenario = scenario_of(
      "name: layouts\nmodel: small-cnn\ntrace: derived\nplatform: dgx1v\nset: {platform.nodes: 2}\n"
      "batch_per_worker: 64\nstrategy: {kind: synchronous}\nsweep: {workers: [8, 16], "
      "strategy.accumulation: [1, 2, 4]}\ncalibrate: [{key: strategy.compute_factor, range: [0.1, 10], "
      "point: {workers: 8, strategy.accumulation: 1}, column: step_seconds, value: 1, source: s}]\n"
      "measured: [{point: {workers: 8, strategy.accumulation: 2}, column: step_seconds, value: 1.2}]\n");
  Simulations all;
  all.inputs = {{}};
  all.rows = {std::vector<Row>(6)};
  std::vector<std::size_t> points;
  const auto is_larger = [&](std::size_t i) {
    return scenario.points[i].name.find("=16") != std::string::npos;
  };
  for (std::size_t i = 0; i < 6; ++i) {
    all.rows[0][i].set("devices", std::int64_t{is_larger(i) ? 16 : 8});
    all.rows[0][i].set("step_seconds", 1.0);
    points.push_back(i);
  }
  Library library;
  learn_errors(scenario, points, library, all);
  const MeasuredConstants constants = shipped_discrepancy(library).measured;
  const double layout = constants.alternative, own = constants.own * (1 + 0.03 / constants.misfit);
  const double total = 2 * layout * layout + own * own + kRepeatability * kRepeatability;
  const auto terms = term_errors(scenario, points, library);
  for (std::size_t i = 0; i < 6; ++i) {
    const std::string& name = scenario.points[i].name;
    const double share = all.shifts[0][i] / std::log(1.2);
    if (name.find("accumulation=1") != std::string::npos) {
      CHECK(share == Approx(0).margin(1e-9));
      const double spread = is_larger(i) ? own : 0;
      CHECK(all.log_errors[i][3] - terms[i][3] == Approx(0).margin(3 * spread + 1e-9));
    }
    if (name.find("accumulation=4") != std::string::npos) CHECK(share == Approx(layout * layout / total));
    if (name.find("accumulation=2") != std::string::npos)
      CHECK(share == Approx((2 * layout * layout + (is_larger(i) ? 0 : own * own)) / total));
  }
}
