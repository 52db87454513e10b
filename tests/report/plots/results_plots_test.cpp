#include "report/plots/results_plots.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "report/results/manifest.hpp"
#include "report/results/results.hpp"
#include "tests/report/have_gnuplot.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

Row point(const std::string& algorithm, int workers, double step) {
  Row row;
  row.set("point", algorithm + " " + std::to_string(workers));
  row.set("strategy", "synchronous");
  row.set("collective", algorithm);
  row.set("nodes", (workers + 7) / 8);
  row.set("workers", workers);
  row.set("step_seconds", step);
  row.set("compute_seconds", 0.2);
  row.set("exposed_communication_seconds", step - 0.2);
  row.set("samples_per_second", workers * 32 / step);
  row.set("efficiency", 0.2 / step);
  row.set("bottleneck", step > 0.21 ? "network" : "compute");
  return row;
}

Results two_algorithms() {
  return {"s",
          {point("ring", 8, 0.2), point("ring", 16, 0.25), point("tree", 8, 0.2), point("tree", 16, 0.22)}};
}

/// 0.5 s at 16 workers by the ring.
Row published_step() {
  Row figure;
  figure.set("scenario", "s");
  figure.set("point", "ring 16");
  figure.set("column", "step_seconds");
  figure.set("relation", "=");
  figure.set("published", 0.5);
  return figure;
}

}  // namespace

TEST_CASE("series differ in the columns that vary at equal workers", "[report][plot]") {
  const auto results = two_algorithms();
  CHECK(series_columns(results, {"workers", "nodes"}) == std::vector<std::string>{"collective"});
  CHECK(series_name(results, results.rows[2], {"collective", "nodes"}) == "tree, nodes=1");
  const Results one{"s", {results.rows[0], results.rows[1]}};
  CHECK(series_columns(one, {"workers"}).empty());
}

TEST_CASE("another network is another series, even at other workers", "[report][plot]") {
  auto results = two_algorithms();
  for (Row& row : results.rows) row.set("model.layers", row.number("workers").value_or(0) > 8 ? 24 : 12);
  CHECK(series_columns(results, {"model.layers", "workers"}) ==
        std::vector<std::string>{"model.layers", "collective"});
  CHECK(scaling_plot(results, {}, {"model.layers", "workers"}).series.size() == 4);
}

TEST_CASE("keys of the sweep name the series before other columns do", "[report][plot]") {
  Results results;
  for (const int batch : {32, 64}) {
    auto row = point("ring", 8, 0.2);
    row.set("batch", batch);
    row.set("label", batch == 32 ? "a" : "b");
    results.rows.push_back(row);
  }
  CHECK(series_columns(results, {"batch"}) == std::vector<std::string>{"batch"});
  CHECK(series_name(results, results.rows[1], {"batch"}) == "batch=64");
  CHECK(series_name(results, results.rows[1], {"nothing", "batch"}) ==
        "batch=64");  // what is empty is left out
}

TEST_CASE("rows without a name are named by a key that they share, and lines are not divided",
          "[report][plot]") {
  Results results{"s", {}};
  for (const int pieces : {1, 2, 0}) {
    auto row = point("", 1, 0.2);
    if (pieces > 0) row.set("strategy.accumulation", pieces);
    if (pieces == 0) row.set("strategy.host_swap", std::string("12 GB/s"));
    results.rows.push_back(row);
  }
  const std::vector<std::string> sweep{"strategy.accumulation", "strategy.host_swap", "workers"};
  const auto columns = series_columns(results, sweep);
  CHECK(columns == std::vector<std::string>{"strategy.accumulation", "strategy.host_swap"});
  CHECK(series_name(results, results.rows[2], columns) == "host_swap=12 GB/s");
  CHECK(breakdown_plot(results, sweep).bars[0].label == "accumulation=1");  // all have one worker

  auto lines = two_algorithms();  // of the rings no name, and a batch that follows the workers
  for (Row& row : lines.rows) {
    const bool ring = row.text("collective") == "ring";
    row.set("batch", ring ? 4 * row.number("workers").value_or(0) : 64);
    if (ring) row.set("collective", std::string());
  }
  CHECK(scaling_plot(lines, {}, {"collective", "batch", "workers"}).series.size() == 2);
}

TEST_CASE("several published figures of a point are several marks, in two columns one", "[report][plot]") {
  const Row figure = published_step();
  Row other = figure, again = figure;
  other.set("published", 0.4);
  again.set("column", "efficiency");
  const auto plot = scaling_plot(two_algorithms(), {"s", {figure, again, other}}, {});
  REQUIRE(plot.series[0].published.size() == 2);
  CHECK(plot.series[0].published[1].throughput == Approx(16 * 32 / 0.4).epsilon(1e-12));
}

TEST_CASE("published figures become marks by the definition of their column", "[report][plot]") {
  Row figure = published_step();
  const auto plot = scaling_plot(two_algorithms(), {"s", {figure}}, {});
  REQUIRE(plot.series.size() == 2);
  CHECK(plot.series[0].name == "ring");
  REQUIRE(plot.series[0].published.size() == 1);
  CHECK(plot.series[0].published[0].throughput == Approx(16 * 32 / 0.5).epsilon(1e-12));
  CHECK(*plot.series[0].published[0].efficiency == Approx(0.4).epsilon(1e-12));
  CHECK(plot.series[1].published.empty());

  figure.set("column", "efficiency");
  CHECK(scaling_plot(two_algorithms(), {"s", {figure}}, {}).series[0].published[0].throughput ==
        Approx(16 * 32 / 0.4).epsilon(1e-12));
  auto swept = two_algorithms();
  for (Row& row : swept.rows) row.set("sweep_minutes", 40.0);
  figure.set("column", "sweep_minutes");
  figure.set("published", 50.0);
  CHECK(scaling_plot(swept, {"s", {figure}}, {}).series[0].published[0].throughput ==
        Approx(16 * 32 / 0.25 * 40 / 50).epsilon(1e-12));
  figure.set("column", "efficiency");
  figure.set("published", 0.4);
  figure.set("relation", "<=");
  CHECK(scaling_plot(two_algorithms(), {"s", {figure}}, {}).series[0].published.empty());
  figure.set("relation", "=");
  figure.set("scenario", "another");
  CHECK(scaling_plot(two_algorithms(), {"s", {figure}}, {}).series[0].published.empty());
}

TEST_CASE("a breakdown stacks the parts of a step that there are", "[report][plot]") {
  auto results = two_algorithms();
  auto plot = breakdown_plot(results, {});
  CHECK(plot.parts == std::vector<std::string>{"compute", "exposed communication"});
  CHECK(plot.bars[3].label == "tree, 16");
  CHECK(plot.bars[3].seconds[1] == Approx(0.02).epsilon(1e-9));

  results.rows[1].set("waiting_seconds", 0.01);
  results.rows[1].set("data_loading_seconds", 0.0);
  plot = breakdown_plot(results, {});
  CHECK(plot.parts ==
        std::vector<std::string>{"compute", "exposed communication", "waiting for the slowest"});
  CHECK(plot.bars[1].seconds[2] == 0.01);
  CHECK(plot.bars[0].seconds[2] == 0);
  results.rows[1].set("host_seconds", 0.02);
  plot = breakdown_plot(results, {});
  REQUIRE(plot.parts.size() == 4);
  CHECK(plot.parts[2] == "waiting for the host");
  CHECK(plot.bars[1].seconds[2] == 0.02);
}

TEST_CASE("the sensitivity plot shows the last point of its file", "[report][plot]") {
  auto all = sensitivity_results("s", "8", "step_seconds", {{"latency", 0.2}});
  const auto last = sensitivity_results("s", "256", "step_seconds", {{"latency", 0.7}, {"noise", 0.1}});
  all.rows.insert(all.rows.end(), last.rows.begin(), last.rows.end());
  const auto plot = sensitivity_plot(read_csv(to_csv(all), "sensitivity.csv"));
  CHECK(plot.title == "s, 256");
  CHECK(plot.result == "step time");
  REQUIRE(plot.shares.size() == 2);
  CHECK(plot.shares[0].share == 0.7);
  CHECK(plot.shares[1].name == "noise");
}

TEST_CASE("draw_results draws what the folder holds data for", "[report][plot]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(draw_results(folder.path()),
                    (folder.path() / "results.csv").string() + ": cannot read: No such file or directory");
  write_atomically(folder.path() / "results.csv", to_csv(two_algorithms()));
  write_atomically(folder.path() / "manifest.json",
                   to_json(Manifest{.settings = {"seed=3"}, .sweep = {"collective", "workers"}}));
  CHECK(draw_results(folder.path()).complaints.empty() == have_gnuplot());
  CHECK(read_file(folder.path() / "scaling.gp").find(" with seed=3'") != std::string::npos);
  CHECK(std::filesystem::exists(folder.path() / "scaling.gp"));
  CHECK(std::filesystem::exists(folder.path() / "breakdown.gp"));
  for (const char* other : {"sensitivity.gp", "campaign.gp", "training.gp"})
    CHECK_FALSE(std::filesystem::exists(folder.path() / other));
}

TEST_CASE("plots of thousands of lines or points are not drawn, which is said", "[report][plot]") {
  const TemporaryFolder folder;
  Results results{"many", {}};
  for (int i = 0; i < 2002; ++i) {
    Row row;
    row.set("strategy.bucket", fmt::format("{} MiB", i / 2));
    row.set("workers", std::int64_t{1 + i % 2});
    row.set("samples_per_second", 1.0);
    row.set("step_seconds_mean", 1.0);
    results.rows.push_back(std::move(row));
  }
  write_atomically(folder.path() / "results.csv", to_csv(results));
  CHECK(draw_results(folder.path()).complaints ==
        std::vector<std::string>{
            "plots of more than 500 lines or 2000 points are not drawn; this sweep has 1001 and 2002"});
  CHECK_FALSE(std::filesystem::exists(folder.path() / "scaling.gp"));
}

TEST_CASE("campaigns have a plot of their own instead of scaling", "[report][plot]") {
  const TemporaryFolder folder;
  auto results = two_algorithms();
  for (Row& row : results.rows) {
    row.set("makespan_hours", 4.0);
    row.set("device_utilization", 1.0);
  }
  write_atomically(folder.path() / "results.csv", to_csv(results));
  CHECK(draw_results(folder.path()).complaints.empty() == have_gnuplot());
  CHECK(std::filesystem::exists(folder.path() / "campaign.gp"));
  CHECK_FALSE(std::filesystem::exists(folder.path() / "scaling.gp"));
}

TEST_CASE("a missing gnuplot is said once for all plots", "[report][plot][errors]") {
  const TemporaryFolder folder;
  write_atomically(folder.path() / "results.csv", to_csv(two_algorithms()));
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", folder.path().c_str(), 1);
  const auto problems = draw_results(folder.path()).complaints;
  ::setenv("PATH", path.c_str(), 1);
  CHECK(problems.size() == 1);
}
