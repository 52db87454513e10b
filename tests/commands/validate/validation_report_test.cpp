#include "commands/validate/validation_report.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/os/files.hpp"
#include "report/results/results.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

TEST_CASE("a stopped validation reports its complete measurements, without an incomplete last line",
          "[commands]") {
  const TemporaryFolder folder;
  CHECK(measured_so_far(folder.path()) == "no run was measured yet");
  const auto file = folder.path() / "samples.jsonl";
  append_line(file, "{\"point\":\"a\",\"seconds\":1.5}");
  append_line(file, "{\"point\":\"b\",\"seconds\":2.5}");
  write_atomically(file, read_file(file) + "{\"point\":");
  CHECK(measured_so_far(folder.path()) == "2 runs measured so far: " + file.string());
}

TEST_CASE("forecasts are joined by the mean of each point and by their hashes, and each has its own errors",
          "[commands]") {
  const TemporaryFolder folder;
  std::vector<RealForecast> forecasts;
  const auto samples = folder.path() / "samples.jsonl";
  for (const int number : {1, 2}) {
    RealForecast& one = forecasts.emplace_back();
    one.steps.scenario = "s";
    Row& row = one.steps.rows.emplace_back();
    row.set("point", std::string("a"));
    row.set("workers", std::int64_t{2});
    row.set("step_seconds", static_cast<double>(number));
    row.set("all_reduce", std::string(number == 1 ? "ring" : "tree"));
    append_line(samples,
                fmt::format(R"({{"scenario":"s","forecast":{},"point":"a","step_seconds":1.5,"kept":true}})",
                            number));
    for (const char* file : {"predicted.csv", "predicted-all-reduces.csv", "links.jsonl"})
      write_atomically(folder.path() / file, fmt::format("{}\n", number));
    write_atomically(folder.path() / "predicted.sha256",
                     "aa  predicted.csv\nbb  predicted-all-reduces.csv\n");
    keep_forecast({"links.jsonl"}, number, folder.path());
  }
  const RealForecast mean = join_forecasts(forecasts, folder.path());
  REQUIRE(mean.steps.rows.size() == 1);
  CHECK(mean.steps.rows[0].number("step_seconds") == 1.5);
  CHECK(mean.steps.rows[0].text("workers") == "2");
  CHECK(mean.steps.rows[0].text("all_reduce") == "ring");
  CHECK(read_file(folder.path() / "predicted.sha256") ==
        "aa  forecast-1/predicted.csv\nbb  forecast-1/predicted-all-reduces.csv\n"
        "aa  forecast-2/predicted.csv\nbb  forecast-2/predicted-all-reduces.csv\n");
  CHECK(read_file(forecast_folder(folder.path(), 1) / "links.jsonl") == "1\n");
  CHECK(read_file(forecast_folder(folder.path(), 2) / "links.jsonl") == "2\n");
  CHECK(forecast_lines(forecasts, StepStatistic::mean, folder.path()) ==
        std::vector<std::string>{"forecast 1: |error| mean 33.33 %, maximum 33.33 %",
                                 "forecast 2: |error| mean 33.33 %, maximum 33.33 %"});
  const auto comparisons = compare_runs(mean.steps, "memory", 2, StepStatistic::mean, folder.path());
  REQUIRE(comparisons.size() == 1);
  CHECK(comparisons[0].error() == 0);
  CHECK(comparisons[0].repeats == 2);
  CHECK(read_file(folder.path() / "samples.csv").find("forecast") != std::string::npos);
}
