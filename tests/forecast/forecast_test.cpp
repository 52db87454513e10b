#include "forecast/forecast.hpp"

#include <fmt/format.h>

#include <array>
#include <catch2/catch.hpp>
#include <fstream>
#include <regex>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "forecast/fit_calibration.hpp"
#include "forecast/simulate_point.hpp"
#include "forecast/summary.hpp"
#include "report/results/results.hpp"
#include "tests/report/temporary_folder.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;

namespace {

const std::string kTiny =
    "name: tiny\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: ethernet-cpu\n"
    "strategy: {kind: synchronous}\nnoise: {jitter: lognormal, sigma: 0.1}\nsimulation: {steps: 2}\n";
const std::string kAssumed =
    "sweep: {workers: [1, 3]}\n"
    "assumed: [{key: platform.network.latency, range: [1 us, 100 us], law: log-uniform, why: unknown}]\n";

Simulations forecast_of(const std::string& text, int processes, const std::filesystem::path& journal = {}) {
  const Scenario scenario = scenario_of(text);
  ForecastOptions options;
  options.processes = processes;
  options.draws = 3;
  for (std::size_t i = 0; i < scenario.points.size(); ++i) options.points.push_back(i);
  options.journal = journal;
  Library library;
  return forecast(scenario, library, options);
}

/// Every number of a forecast, to the bit.
std::string text_of(const Simulations& all) {
  std::string text;
  for (const auto& rows : all.rows) {
    for (const Row& row : rows) text += to_json_line({}, row) + "\n";
  }
  for (const auto& kinds : all.without) {
    for (const auto& [kind, row] : kinds) text += to_json_line({}, row) + "\n";
  }
  return text;
}

/// The lines of a journal as if it had been written with this text, so that a test sees which ones are used.
std::string rewritten(const std::string& text, const std::string& old, const std::string& now) {
  std::string lines;
  for (Row row : read_json_lines(std::regex_replace(text, std::regex(old), now), "j").rows) {
    std::erase_if(row.cells, [](const auto& cell) { return cell.first == "checksum"; });
    lines += journal_line("", row) + "\n";
  }
  return lines;
}

long lines_in(const std::filesystem::path& file) {
  const std::string text = read_file(file);
  return std::count(text.begin(), text.end(), '\n');
}

/// The step of one worker of kTiny without noise, and the overhead that makes it `value`.
std::string fed_in(const std::string& value, const std::string& column = "step_seconds") {
  return kTiny +
         "set: {noise.sigma: 0}\ncalibrate: [{key: strategy.step_overhead, range: [0 ms, 50 ms], point: " +
         "{workers: 1}, column: " + column + ", value: " + value +
         ", source: none}]\nsweep: {workers: [1]}\n";
}

Calibrated calibrated(const std::string& text) {
  Library library;
  const Scenario scenario = scenario_of(text);
  return calibrated_draw(scenario, {}, in_own_process(scenario, library));
}

}  // namespace

TEST_CASE("the first draw is the middle of every range", "[commands]") {
  for (const std::size_t dimensions : {1, 2, 6, 20}) {
    CHECK(low_discrepancy(0, dimensions) == std::vector<double>(dimensions, 0.5));
  }
  CHECK(low_discrepancy(3, 0).empty());
}

TEST_CASE("without --draws a scenario gets four draws for each assumption, from 16 to 32", "[commands]") {
  Scenario scenario;
  CHECK(draw_count(scenario, 0) == 1);
  CHECK(draw_count(scenario, 7) == 1);
  scenario.assumptions.resize(3);
  CHECK(draw_count(scenario, 0) == 16);
  CHECK(draw_count(scenario, 7) == 7);
  scenario.assumptions.resize(6);
  CHECK(draw_count(scenario, 0) == 24);
  scenario.assumptions.resize(20);
  CHECK(draw_count(scenario, 0) == 32);
}

TEST_CASE("64 draws of up to 20 assumptions fill every range evenly: an eighth holds 8, give or take 1",
          "[commands]") {
  for (std::size_t dimensions = 1; dimensions <= 20; ++dimensions) {
    std::vector<std::array<int, 8>> bins(dimensions);
    for (std::size_t draw = 0; draw < 64; ++draw) {
      const auto values = low_discrepancy(draw, dimensions);
      for (std::size_t i = 0; i < dimensions; ++i) {
        REQUIRE(values[i] >= 0);
        REQUIRE(values[i] < 1);
        ++bins[i].at(8 * values[i]);
      }
    }
    for (const auto& counts : bins) {
      for (const int count : counts) {
        INFO(dimensions);
        CHECK(std::abs(count - 8) <= 1);
      }
    }
  }
}

TEST_CASE("calibrated values override assumptions, these the point, and that the settings", "[commands]") {
  Scenario scenario = scenario_of(
      "name: s\nset: {a: 1}\nassumed: [{key: a, range: [10, 20], why: w}]\n"
      "calibrate: [{key: a, range: [0 s, 9 s], point: {}, column: c, value: 1, source: x}]\n");
  const auto values = values_of(scenario, {parse_assignment("a=2")}, {0.5}, {1.0 / 3});
  REQUIRE(values.size() == 4);
  CHECK(values[0].value.text == "1");
  CHECK(values[1].value.text == "2");
  CHECK(values[2].value.text == "15");
  CHECK(values[3].value.text == "0.3333333333333333 s");
  YamlNode root;
  for (const Assignment& one : values) assign(root, one);
  CHECK(find_path(root, "a")->text == "0.3333333333333333 s");
}

TEST_CASE("a forecast is the same to the bit in any number of processes", "[commands]") {
  const Simulations one = forecast_of(kTiny + kAssumed, 1);
  REQUIRE(one.rows.size() == 3);
  CHECK(text_of(one) == text_of(forecast_of(kTiny + kAssumed, 2)));
  CHECK(one.inputs == std::vector<std::vector<double>>{low_discrepancy(0, 1), low_discrepancy(1, 1),
                                                       low_discrepancy(2, 1)});
  for (const auto& rows : one.rows) {
    CHECK(rows.at(0).number("workers") == 1);
    CHECK(rows.at(1).number("workers") == 3);
  }
  CHECK(one.rows[0][1].number("communication_seconds") != one.rows[1][1].number("communication_seconds"));
}

TEST_CASE("no step is shorter than its compute, and its parts add up to it", "[forecast]") {
  for (const char* steps : {"4", "9", "10"}) {
    const Simulations all = forecast_of(
        kTiny + "set: {noise.sigma: 0.5, simulation.steps: " + steps + "}\nsweep: {workers: [1, 2, 5]}\n", 2);
    for (const Row& row : all.rows[0]) {
      const double step = *row.number("step_seconds"), compute = *row.number("compute_seconds");
      CHECK(step >= compute);
      CHECK(compute + *row.number("waiting_seconds") + *row.number("data_loading_seconds") +
                *row.number("exposed_communication_seconds") ==
            Approx(step));
    }
    CHECK(*all.rows[0][0].number("step_seconds") == Approx(*all.rows[0][0].number("compute_seconds")));
  }
}

TEST_CASE("no median step over draws is shorter than its compute, not even by rounding", "[forecast]") {
  for (const char* seed : {"1", "2", "3"}) {
    const std::string text = kTiny +
                             "set: {noise.sigma: 0.1, simulation.steps: 20, simulation.seed: " + seed +
                             "}\nsweep: {workers: [1]}\n"
                             "assumed: [{key: noise.sigma, range: [0.05, 0.2], why: varied}]\n";
    const Simulations all = forecast_of(text, 2);
    const Row row = summarized_results(scenario_of(text), {0}, all).rows.at(0);
    CHECK(*row.number("step_seconds") >= *row.number("compute_seconds"));
  }
  Row row;
  row.set("step_seconds", 1.0);
  for (const double compute : {1.0 + 1e-15, 1.0 - 1e-15, 1.1}) {
    row.set("compute_seconds", compute);
    remove_rounding_of_compute(row);
    CHECK(*row.number("compute_seconds") == (compute < 1.05 ? std::min(compute, 1.0) : compute));
  }
}

TEST_CASE("a journal keeps finished simulations, and a second run repeats none of them", "[commands]") {
  const TemporaryFolder folder;
  const auto journal = folder.path() / "j.jsonl";
  const Simulations first = forecast_of(kTiny + kAssumed, 2, journal);
  CHECK(lines_in(journal) == 8);  // two points: three draws, one without jitter
  const std::string text = read_file(journal);
  for (const char* what : {"| draw 2 | as it is\"", "| draw 0 | without jitter\""})
    CHECK(text.find("\"simulation\":\"workers=3 " + std::string(what)) != std::string::npos);
  CHECK(text_of(forecast_of(kTiny + kAssumed, 1, journal)) == text_of(first));
  CHECK(read_file(journal) == text);

  std::ofstream(journal) << rewritten(text, "\"batch_per_worker\":64", "\"batch_per_worker\":65");
  const Simulations tampered = forecast_of(kTiny + kAssumed, 1, journal);
  CHECK(tampered.rows[2][1].number("batch_per_worker") == 65);
  CHECK(tampered.without[0].at(Without::jitter).number("batch_per_worker") == 65);
}

TEST_CASE("simulations that a torn journal lacks are repeated, and the journal is complete afterwards",
          "[commands]") {
  const TemporaryFolder folder;
  const auto journal = folder.path() / "j.jsonl";
  const Simulations whole = forecast_of(kTiny + kAssumed, 1, journal);
  const std::string text = read_file(journal);
  for (const std::size_t length : {text.size() / 2, text.find('\n') - 4, std::size_t{7}}) {
    std::ofstream(journal) << text.substr(0, length);
    CHECK(text_of(forecast_of(kTiny + kAssumed, 2, journal)) == text_of(whole));
    CHECK(lines_in(journal) == 8);
    CHECK(read_json_lines(read_file(journal), "j").rows.size() == 8);
  }
}

TEST_CASE("damaged lines of a journal are simulated again, and all others are kept", "[commands]") {
  const TemporaryFolder folder;
  const auto journal = folder.path() / "j.jsonl";
  const Simulations whole = forecast_of(kTiny + kAssumed, 1, journal);
  const std::string text =
      rewritten(read_file(journal), "\"batch_per_worker\":64", "\"batch_per_worker\":65");
  const auto second = text.find('\n') + 1, third = text.find('\n', second) + 1;
  const std::string line = text.substr(second, third - second), step = "\"step_seconds\":[^,]*";
  for (const std::string& damaged :
       {std::string(200, '\0') + "\n", std::string("\x80garbage\n\n{}\n"), line.substr(0, 40) + "\n",
        std::string(), std::regex_replace(line, std::regex(step), "\"step_seconds\":\"fast\""),
        std::regex_replace(line, std::regex(step), "\"step_seconds\":1e308"),
        rewritten(line, step, "\"step_seconds\":\"fast\""), rewritten(line, step, "\"step_seconds\":-5"),
        rewritten(line, step, "\"step_seconds\":0.0")}) {
    CAPTURE(damaged);
    std::ofstream(journal) << text.substr(0, second) + damaged + text.substr(third);
    const Simulations all = forecast_of(kTiny + kAssumed, 1, journal);
    CHECK(all.rows[0][0].number("batch_per_worker") == 65);
    CHECK(all.rows[0][1].number("batch_per_worker") == 64);  // simulated again
    CHECK(all.rows[0][1].number("step_seconds") == whole.rows[0][1].number("step_seconds"));
    CHECK(read_file(journal).starts_with(text.substr(0, second) + text.substr(third)));
    CHECK(lines_in(journal) == 8);
  }
  std::ofstream(journal) << text.substr(0, second) + std::string(9, '\0') + "\n" + text.substr(third);
  CHECK_THROWS_WITH(merged_journals({journal}), Catch::Matchers::Contains("j.jsonl:2:1: damaged or altered"));
}

TEST_CASE("the simulation gives the published figure at the calibrated value", "[commands]") {
  const auto [found, reached] = calibrated(fed_in("60 ms"));
  REQUIRE(found.size() == 1);
  CHECK(reached.at(0) == Approx(0.06).epsilon(1e-5));
  const Simulations all = forecast_of(fed_in("60 ms"), 1);
  CHECK(all.calibrated == std::vector<std::vector<double>>{found});
  CHECK(all.rows[0][0].number("step_seconds") == Approx(0.06).epsilon(1e-4));
  const double layers = forecast_of(fed_in("1 ms"), 1).rows[0][0].number("compute_seconds").value();
  CHECK(found[0] == Approx(60 - 1e3 * layers).epsilon(1e-3));
}

TEST_CASE("the simulation gives the published ratio of two points at the calibrated value", "[commands]") {
  const std::string text = kTiny +
                           "set: {noise.sigma: 0}\ncalibrate: [{key: strategy.step_overhead, range: [0 ms, "
                           "1000 ms], point: {batch_per_worker: 128}, over: {batch_per_worker: 64}, column: "
                           "step_seconds, value: 1.5, source: none}]\nworkers: 1\n"
                           "sweep: {batch_per_worker: [64, 128]}\n";
  const Simulations all = forecast_of(text, 1);
  const double small = all.rows[0][0].number("step_seconds").value();
  CHECK(all.rows[0][1].number("step_seconds").value() / small == Approx(1.5).epsilon(1e-4));
  const double overhead = 1e-3 * all.calibrated.at(0).at(0);
  CHECK(overhead > 0.3 * small);  // half of the smaller step, if the other layers take twice as long
  CHECK(overhead < 0.7 * small);
}

TEST_CASE("a figure that cannot be met takes the nearer end of the range, and what it gives is said",
          "[commands]") {
  const Calibrated low = calibrated(fed_in("1 ms")), high = calibrated(fed_in("9 s"));
  CHECK(low.values == std::vector<double>{0});
  CHECK(high.values == std::vector<double>{50});
  CHECK(high.reached.at(0) == Approx(low.reached.at(0) + 0.05).epsilon(1e-9));
  const Scenario scenario = scenario_of(fed_in("60 ms"));
  CHECK(is_reached(scenario.calibrations.at(0), 0.06005));
  CHECK_FALSE(is_reached(scenario.calibrations.at(0), 0.0601));
}

TEST_CASE("a guess near the calibrated value finds it in four simulations, and a bad one costs no accuracy",
          "[commands]") {
  Scenario scenario = scenario_of(
      "name: fed\nmodel: small-cnn\ntrace: small-cnn-b64-cpu\nplatform: ethernet-cpu\nstrategy: {kind: "
      "synchronous}\nsimulation: {steps: 2}\ncalibrate: [{key: strategy.compute_factor, range: [0.001, "
      "1000], "
      "point: {workers: 2}, column: samples_per_second, value: 700, source: x}]\n");
  Library library;
  const auto counted = [&](double guess) {
    scenario.calibrations.front().guess = guess;
    int simulations = 0;
    const auto simulation = in_own_process(scenario, library);
    const Calibrated found = calibrated_draw(scenario, {}, [&](const std::vector<Assignment>& values) {
      ++simulations;
      return simulation(values);
    });
    return std::pair(found.values.front(), simulations);
  };
  const auto [exact, many] = counted(0);
  const auto [near, few] = counted(1.3 * exact);
  CHECK(near == Approx(exact).epsilon(3e-4));
  CHECK(few <= 4);
  CHECK(many > 2 * few);
  CHECK(counted(300).first == Approx(exact).epsilon(3e-4));
}

TEST_CASE("a calibration that lands far from 1 says what that means", "[sweep]") {
  const auto doubt = [](double value) { return calibration_doubt("strategy.compute_factor", value); };
  CHECK(doubt(0.7).empty());
  CHECK(doubt(1.4).empty());
  CHECK(calibration_doubt("strategy.step_overhead", 0.1).empty());
  CHECK_THAT(doubt(0.65),
             Catch::Matchers::Contains("needs layers 1.54 times faster than the model has them"));
  CHECK_THAT(doubt(0.1), Catch::Matchers::Contains("strategy.compute_factor = 0.1 is far from 1"));
  CHECK_THAT(doubt(3), Catch::Matchers::Contains("3 times slower") &&
                           Catch::Matchers::Contains("its step has work that the scenario does not have"));
}

TEST_CASE("a journal keeps calibrations, and a second run does not search again", "[commands]") {
  const TemporaryFolder folder;
  const auto journal = folder.path() / "j.jsonl";
  const Simulations first = forecast_of(fed_in("60 ms"), 1, journal);
  CHECK(lines_in(journal) == 3);  // a calibration, a point, one without jitter
  const std::string text = read_file(journal);
  const Simulations second = forecast_of(fed_in("60 ms"), 1, journal);
  CHECK(second.calibrated == first.calibrated);  // to the bit
  CHECK(second.reached == first.reached);
  CHECK(read_file(journal) == text);

  std::ofstream(journal) << rewritten(text.substr(0, text.find('\n') + 1), "\"value_0\":[^,]*",
                                      "\"value_0\":7.5");
  CHECK(forecast_of(fed_in("60 ms"), 1, journal).calibrated == std::vector<std::vector<double>>{{7.5}});
}

TEST_CASE("each point's first row is inspected once, from a journal too, and what that throws ends it",
          "[commands]") {
  const TemporaryFolder folder;
  const Scenario scenario = scenario_of(kTiny + kAssumed);
  ForecastOptions options;
  options.draws = 3;
  options.points = {0, 1};
  options.journal = folder.path() / "j.jsonl";
  Library library;
  for (int run = 0; run < 2; ++run) {
    std::vector<std::int64_t> seen(2);
    options.inspect = [&](std::size_t point, const Row& row) {
      seen.at(point) += static_cast<std::int64_t>(*row.number("workers"));
    };
    forecast(scenario, library, options);
    CHECK(seen == std::vector<std::int64_t>{1, 3});
  }
  options.inspect = [](std::size_t, const Row&) { throw InputError("no"); };
  CHECK_THROWS_WITH(forecast(scenario, library, options), "no");
}

TEST_CASE("a calibration on a column that is not there is refused", "[commands][errors]") {
  CHECK_THROWS_AS(calibrated(fed_in("0.06", "step_second")), InputError);
  CHECK_THROWS_WITH(calibrated(fed_in("0.06", "step_second")),
                    Catch::Matchers::EndsWith(
                        "s.yaml:9:19: calibrate: expected a column of the results, got \"step_second\""));
}

TEST_CASE("a wrong value of the only point is the same error from a child process", "[commands][errors]") {
  CHECK_THROWS_AS(forecast_of(kTiny + "sweep: {workers: [many]}\n", 2), InputError);
  CHECK_THROWS_WITH(
      forecast_of(kTiny + "sweep: {workers: [many]}\n", 2),
      Catch::Matchers::EndsWith("s.yaml:8:19: workers: expected an integer from 1 to 10000000, got "
                                "\"many\""));
}

TEST_CASE("one point that fails has a reason, and the others have their results", "[commands][errors]") {
  const std::string swept = kTiny + "sweep: {workers: [1, many, 3]}\n";
  const TemporaryFolder folder;
  for (const int processes : {1, 2}) {
    const auto journal = folder.path() / fmt::format("{}.jsonl", processes);
    const Simulations all = forecast_of(swept, processes, journal);
    REQUIRE(all.failed.size() == 1);
    CHECK_THAT(all.failed.at(1), Catch::Matchers::EndsWith("s.yaml:8:22: workers: expected an integer from 1 "
                                                           "to 10000000, got \"many\""));
    CHECK(all.rows[0][1].cells.empty());
    CHECK(all.without[1].empty());
    const Simulations whole = forecast_of(kTiny + "sweep: {workers: [1, 3]}\n", 1);
    CHECK(to_json_line({}, all.rows[0][0]) == to_json_line({}, whole.rows[0][0]));
    CHECK(to_json_line({}, all.rows[0][2]) == to_json_line({}, whole.rows[0][1]));
    CHECK(text_of(forecast_of(swept, processes, journal)) == text_of(all));  // tried again on --resume
  }
}

TEST_CASE("the journals of shards together are the simulations of a whole run", "[commands]") {
  const TemporaryFolder folder;
  const Scenario scenario = scenario_of(kTiny + kAssumed);
  ForecastOptions options;
  options.draws = 3;
  options.part = true;
  std::vector<std::filesystem::path> journals;
  Library library;
  for (std::size_t point = 0; point < 2; ++point) {
    options.points = {point};
    journals.push_back(options.journal = folder.path() / fmt::format("{}.jsonl", point));
    forecast(scenario, library, options);
  }
  options.points = {0, 1};
  options.part = false;
  const Simulations whole = forecast_of(kTiny + kAssumed, 1);
  CHECK(text_of(collected(scenario, merged_journals(journals), options)) == text_of(whole));
  CHECK_THROWS_WITH(collected(scenario, merged_journals({journals[0]}), options),
                    "1 of 2 points have no results in these shards: workers=3");
  append_line(
      journals[0],
      journal_line(
          "tiny", read_json_lines(R"({"simulation":"workers=3 | draw 0 | as it is","step_seconds":7.0})", "j")
                      .rows.at(0)));
  CHECK_THROWS_WITH(merged_journals(journals),
                    Catch::Matchers::EndsWith("1.jsonl: \"workers=3 | draw 0 | as it "
                                              "is\" differs from its result in another shard"));
}
