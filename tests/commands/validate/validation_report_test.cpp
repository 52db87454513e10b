#include "commands/validate/validation_report.hpp"

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

TEST_CASE("launches are joined by the mean forecast of a point, their samples and their hashes",
          "[commands]") {
  const TemporaryFolder folder;
  std::vector<RealForecast> forecasts;
  for (const int launch : {1, 2}) {
    RealForecast& one = forecasts.emplace_back();
    one.steps.scenario = "s";
    Row& row = one.steps.rows.emplace_back();
    row.set("point", std::string("a"));
    row.set("workers", std::int64_t{2});
    row.set("step_seconds", static_cast<double>(launch));
    row.set("all_reduce", std::string(launch == 1 ? "ring" : "tree"));
    const auto own = launch_folder(folder.path(), launch);
    std::filesystem::create_directories(own);
    append_line(own / "samples.jsonl", R"({"scenario":"s","point":"a","step_seconds":1.5,"kept":true})");
    write_atomically(own / "predicted.sha256", "aa  predicted.csv\nbb  predicted-all-reduces.csv\n");
  }
  const RealForecast mean = join_launches(forecasts, folder.path());
  REQUIRE(mean.steps.rows.size() == 1);
  CHECK(mean.steps.rows[0].number("step_seconds") == 1.5);
  CHECK(mean.steps.rows[0].text("workers") == "2");
  CHECK(mean.steps.rows[0].text("all_reduce") == "ring");
  CHECK(read_file(folder.path() / "predicted.sha256") ==
        "aa  launch-1/predicted.csv\nbb  launch-1/predicted-all-reduces.csv\n"
        "aa  launch-2/predicted.csv\nbb  launch-2/predicted-all-reduces.csv\n");
  const auto comparisons = compare_runs(mean.steps, "memory", 2, StepStatistic::mean, folder.path());
  REQUIRE(comparisons.size() == 1);
  CHECK(comparisons[0].error() == 0);
  CHECK(comparisons[0].repeats == 2);
  CHECK(read_file(folder.path() / "samples.csv").find("launch") != std::string::npos);
}
