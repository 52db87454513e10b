#include "report/page/page.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <set>

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

Row row(int workers, double throughput, double efficiency, const std::string& bottleneck,
        const std::string& algorithm = "ring") {
  Row one;
  one.set("point", fmt::format("workers={}, strategy.all_reduce={}", workers, algorithm));
  one.set("strategy.all_reduce", algorithm);
  one.set("workers", std::int64_t{workers});
  one.set("step_seconds", 32.0 * workers / throughput);
  one.set("compute_seconds", 0.1);
  one.set("exposed_communication_seconds", 0.05);
  one.set("samples_per_second", throughput);
  one.set("efficiency", efficiency);
  one.set("bottleneck", bottleneck);
  return one;
}

const std::string kCompute = "compute (90 %)";
const std::string kTraffic = "communication (57 %)";
const std::vector<std::string> kSweep{"workers", "strategy.all_reduce"};

Page example() {
  Page page;
  page.results = {"two",
                  {row(8, 800, 1, kCompute), row(16, 1500, 0.94, kCompute), row(32, 1400, 0.44, kTraffic)}};
  page.manifest.version = "1.2.3";
  page.manifest.sweep = kSweep;
  page.description = "an example";
  page.scenario_text = "name: two\n";
  return page;
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("scaling ends where half of the efficiency or the throughput is lost", "[report]") {
  CHECK(answer_of(example().results, kSweep) ==
        "Scaling ends at 16 workers: throughput is highest there, and the efficiency is 44.0 % at 32 "
        "(100 % at 8, below 80 % from 32 on), where communication is 57 % of a step.");
  const Results slow{
      "s", {row(8, 800, 1, kCompute), row(16, 1000, 0.62, kTraffic), row(64, 1600, 0.25, kTraffic)}};
  CHECK(
      answer_of(slow, kSweep) ==
      "Scaling ends at 16 workers: the efficiency is 62.0 % there, and 25.0 % at 64 (100 % at 8, below 80 % "
      "from 16 on), where communication is 57 % "
      "of a step.");
}

TEST_CASE("scaling that does not end, a single point and no point are said to be so", "[report]") {
  const Results good{"s", {row(8, 800, 1, kCompute), row(16, 1500, 0.94, kCompute)}};
  CHECK(answer_of(good, kSweep) ==
        "Scaling does not end within this sweep: the efficiency is 94.0 % at 16 workers (100 % at 8), and "
        "compute is 90 % "
        "of a "
        "step.");
  const Results one{"s", {row(8, 800, 1, "compute (90 %)")}};
  CHECK(answer_of(one, kSweep) == "At 8 workers a step takes 320 ms; compute is 90 % of a step.");
  CHECK(answer_of({"s", {}}, kSweep) == "No point has results.");
}

TEST_CASE("the answer names the share of the step that measurements add", "[report]") {
  Row part = row(8, 800, 1, "compute (85 %)");
  part.set("unmodelled_seconds", 0.12 * 0.32);
  CHECK(answer_of({"s", {part}}, kSweep) ==
        "At 8 workers a step takes 320 ms; compute is 85 % of a step, and what measurements add is 12 %.");
}

TEST_CASE("points that do not fit into memory are no part of the answer", "[report]") {
  Results results = example().results;
  results.rows[2].set("fits", false);
  CHECK(answer_of(results, kSweep) ==
        "Scaling does not end within this sweep: the efficiency is 94.0 % at 16 workers (100 % at 8), and "
        "compute is "
        "90 % of a step. 1 of 3 points do not fit into memory and do not count here.");
  for (Row& one : results.rows) {
    one.set("fits", false);
    one.set("why_not", "63.9 of 41.9 GB");
  }
  CHECK(answer_of(results, kSweep) ==
        "No point of this sweep fits into the memory of its devices; workers=8, strategy.all_reduce=ring: "
        "63.9 of 41.9 GB.");
}

TEST_CASE("with several series the answer is about the fastest", "[report]") {
  Results both = example().results;
  both.rows.push_back(row(8, 800, 1, kCompute, "double_tree"));
  both.rows.push_back(row(32, 3000, 0.94, kCompute, "double_tree"));
  CHECK_THAT(answer_of(both, kSweep), Contains("Scaling (double_tree) does not end"));
}

TEST_CASE("measurements are marked in the charts", "[report]") {
  Page page = example();
  const std::string without = to_html(page);
  CHECK_THAT(without, !Contains("Black diamonds are measurements"));
  Row figure;
  figure.set("point", page.results.rows.front().text("point"));
  figure.set("column", "samples_per_second");
  figure.set("relation", "=");
  figure.set("published", 1.25 * *page.results.rows.front().number("samples_per_second"));
  figure.set("measured", true);
  page.measured_figures = {figure};
  const std::string html = to_html(page);
  CHECK_THAT(html, Contains("Black diamonds are measurements, which the forecasts have learned from."));
  CHECK_THAT(html, Contains("measured " + shortest(*figure.number("published")) + " samples/s"));
  page.results.rows.push_back(row(8, 800, 1, kCompute, "double_tree"));
  page.results.rows.push_back(row(32, 3000, 0.94, kCompute, "double_tree"));
  const std::string several = to_html(page), chart = several.substr(0, several.find("</figure>"));
  CHECK(chart.rfind("fill=\"#222\"") > chart.rfind("<circle"));  // no mark of another series covers it
}

TEST_CASE("the page is one file with every section, and equal results are equal pages", "[report]") {
  Page page = example();
  page.assumptions = {{"platform.network.latency", "1 to 30 us", "not published"}};
  page.settings = {"strategy.bucket=25 MiB"};
  page.change = "Change first: overlap.";
  page.advice = {"+12 %  strategy.bucket: 100 MiB"};
  page.doubts = {"network 60 %"};
  page.measured = {"measured: step_seconds = 2"};
  Row failed;
  failed.set("point", "workers=3");
  failed.set("failed", "64 samples cannot be shared evenly by 3 workers");
  page.results.rows.push_back(failed);
  const std::string html = to_html(page);
  for (const char* part :
       {"<h2>Charts</h2>", "<h2>Points</h2>", "cannot be shared evenly", "<h2>Assumptions</h2>",
        "not published", "name: two", "stepcast 1.2.3", "aria-label=\"Throughput against workers\"",
        "Scaling ends at 16 workers", "Change first: overlap.</p>", "<h2>What helps</h2>",
        "strategy.bucket: 100 MiB", "<h2>Not known</h2>", "network 60 %", "<h2>Measurements</h2>",
        "step_seconds = 2", "--set strategy.bucket=25 MiB"})
    CHECK_THAT(html, Contains(part));
  CHECK(count(html, "<circle") == 6);  // three points in two charts
  CHECK(count(html, "http") == 0);     // nothing is loaded
  CHECK(count(html, "src=") == 0);
  page.manifest.date = "2026-01-01T00:00:00Z";
  page.manifest.command = {"another"};
  CHECK(to_html(page) == html);
}

TEST_CASE("the page explains its marks, has an ideal line, and gives each of fifteen series a look",
          "[report]") {
  ScalingPlot plot{"s", "samples/s", {}};
  for (int i = 0; i < 15; ++i)
    plot.series.push_back({fmt::format("series {}", i), {{1, {10, 9, 11}}, {4, {30, 25, 35}}}, {}});
  const std::string chart = throughput_chart(plot);
  CHECK_THAT(chart, Contains("A band is the interval of the forecast, from 5 % to 95 %."));
  CHECK_THAT(chart, Contains("ideal scaling from the fewest workers"));
  CHECK_THAT(chart, Contains("class=\"ideal\""));
  std::set<std::string> looks;
  const std::string path = "<path d=\"M0 5H30\" ";
  for (auto at = chart.find(path); at != std::string::npos; at = chart.find(path, at + 1))
    looks.insert(chart.substr(at, chart.find("/>", at) - at));
  CHECK(looks.size() == 15);
}

TEST_CASE("the page has the makespan of campaigns", "[report]") {
  const std::string chart = campaign_chart(
      {"s", "workers", {"training", "nothing left to try"}, {{"8", {12.5, {}, {}}, {0.75, 0.25}}}});
  CHECK_THAT(chart, Contains("Makespan of the campaign"));
  CHECK_THAT(chart, Contains("12.5 h"));
  CHECK_THAT(chart, Contains("training: 75.0 %"));
}

TEST_CASE("text of a user cannot become markup", "[report][errors]") {
  const std::string evil = "</pre><script>alert('x')</script>&\"\x01\xff";
  CHECK(escaped(evil) ==
        "&lt;/pre&gt;&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt;&amp;&quot;?\xef\xbf\xbd");
  Page page = example();
  for (Row& one : page.results.rows) {
    one.set("strategy.all_reduce", evil + one.text("workers"));
    one.set("point", evil);
    one.set("bottleneck", evil);
  }
  page.results.scenario = page.description = page.scenario_text = page.manifest.version = evil;
  page.assumptions = {{evil, evil, evil}};
  page.settings = {evil};
  page.manifest.inputs = {{evil, evil, evil}};
  const std::string html = to_html(page);
  CHECK(count(html, "<script>") == 1);  // the page's own
  CHECK(count(html, "alert('x')") == 0);
}

TEST_CASE("charts without data are left out", "[report]") {
  CHECK(throughput_chart({}).empty());
  CHECK(throughput_chart({"t", "samples/s", {{"one", {{8, {100, {}, {}}, {}}}, {}}}}).empty());  // one point
  CHECK(breakdown_chart({}).empty());
  CHECK(sensitivity_chart({}).empty());
  CHECK_THAT(sensitivity_chart({"s, p", "step time", {{"a.b", 0.25}}}), Contains("25.0 %"));
}

TEST_CASE("a table of many points is cut, and says so", "[report]") {
  Page page = example();
  page.results.rows.clear();
  for (int i = 1; i <= 2100; ++i) page.results.rows.push_back(row(i, 100.0 * i, 1, kCompute));
  CHECK_THAT(to_html(page), Contains("2000 of 2100 points; results.csv has all."));
}
