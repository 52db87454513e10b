#include <stdlib.h>

#include <catch2/catch.hpp>
#include <set>
#include <string>

#include "core/os/files.hpp"
#include "report/plots/breakdown.hpp"
#include "report/plots/loss_curves.hpp"
#include "report/plots/results_plots.hpp"
#include "report/plots/scaling.hpp"
#include "report/plots/scatter.hpp"
#include "report/plots/search_plot.hpp"
#include "report/plots/style.hpp"
#include "tests/report/have_gnuplot.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

/// A picture that shows something is larger than an empty canvas, and complete.
void check_pictures(const std::filesystem::path& folder, const std::string& name) {
  const auto svg = read_file(folder / (name + ".svg"));
  const auto png = read_file(folder / (name + ".png"));
  CHECK(svg.find("</svg>") != std::string::npos);
  CHECK(svg.size() > 4000);
  CHECK(png.substr(0, 8) == "\x89PNG\r\n\x1a\n");
  CHECK(png.substr(png.size() - 8, 4) == "IEND");
  CHECK(png.size() > 8000);
}

/// Texts that a careless script would run, take as a format, or trip over.
std::vector<std::string> hostile_texts(const std::filesystem::path& folder) {
  const auto touch = "touch " + (folder / "injected").string();
  return {"`" + touch + "`",
          "$(" + touch + ")",
          "'; system('" + touch + "'); '",
          "\"; system(\"" + touch + "\") #",
          "'`" + touch + "`",
          "@x %s %d %n {/Bold a}_b^c \\ \n set output '| " + touch + "'\nEOD",
          "{ unbalanced",
          "caf\xc3\xa9 \xff\xfe",
          ""};
}

ScalingPlot two_series(const std::string& name) {
  const ScalingSeries first{
      name, {{1, {10}}, {2, {19, 18.0, 20.0}}, {4, {36, 33.0, 38.0}}}, {{4, 35, 0.875}}};
  const ScalingSeries second{"b" + name, {{1, {20}}, {8, {100}}}, {}};
  return {name, name, {first, second}};
}

CampaignPlot two_campaigns(const std::string& text) {
  return {text, text, {text, "b" + text}, {{text, {3, 2.5, 4.0}, {0.75, 0.25}}, {"2", {90}, {0.04, 0.96}}}};
}

/// Every kind of plot with `text` wherever text can stand.
std::vector<std::pair<std::string, PlotScript>> all_plots(const std::string& text) {
  return {
      {"scaling", *scaling_script(two_series(text))},
      {"breakdown", *breakdown_script({text, text, {text, "b" + text}, {{text, {0.1, 0.2}}, {"2", {0.3}}}})},
      {"campaign", *campaign_script(two_campaigns(text))},
      {"search", *search_script({text, text, false, {{{1, 2e9}}, {{2, 3e9}}}})},
      {"sensitivity", *sensitivity_script({text, text, {{text, 0.7}, {"b" + text, 0.1}}})},
      {"scatter", *scatter_script({text, text, 0.05, {{text, {{1, 1.1}, {20, 21}}}}})}};
}

}  // namespace

TEST_CASE("every plot is drawn as SVG and PNG and leaves only these and its script", "[report][plot]") {
  if (!have_gnuplot()) return;
  const TemporaryFolder folder;
  for (const auto& [name, script] : all_plots("ring")) {
    CAPTURE(name);
    CHECK_FALSE(draw_plot(folder.path(), name, script).has_value());
    check_pictures(folder.path(), name);
    CHECK(read_file(folder.path() / (name + ".svg")).find("ring") != std::string::npos);
  }
  CHECK(entries(folder.path()) == 6 * 3);
}

TEST_CASE("no text in a plot is run, and every text is drawn", "[report][plot][errors]") {
  if (!have_gnuplot()) return;
  const TemporaryFolder folder;
  for (const auto& text : hostile_texts(folder.path())) {
    for (const auto& [name, script] : all_plots(text)) {
      CAPTURE(text, name);
      const auto problem = draw_plot(folder.path(), name, script);
      CHECK(problem.value_or("") == "");
      check_pictures(folder.path(), name);
    }
  }
  CHECK(entries(folder.path()) == 6 * 3);
}

TEST_CASE("without two numbers of workers there is no scaling plot, and a single point has no ideal line",
          "[report][plot]") {
  const ScalingSeries alone{"a", {{8, {100, 90.0, 110.0}}}, {}};
  CHECK_FALSE(scaling_script({"one", "samples/s", {alone}}).has_value());
  CHECK_FALSE(scaling_script({"two", "samples/s", {alone, {"b", {{16, {150}}}, {}}}}).has_value());
  const ScalingPlot both{"both", "samples/s", {alone, {"b", {{4, {100}}, {8, {150}}}, {}}}};
  const auto script = *scaling_script(both);
  CHECK(script.body.find("25 * x") != std::string::npos);
  CHECK(script.body.find("12.5 * x") == std::string::npos);
  if (!have_gnuplot()) return;
  const TemporaryFolder folder;
  CHECK_FALSE(draw_plot(folder.path(), "scaling", script).has_value());
  check_pictures(folder.path(), "scaling");
}

TEST_CASE("a plot without anything to draw is no script", "[report][plot]") {
  CHECK_FALSE(scaling_script({}).has_value());
  CHECK_FALSE(scaling_script({"t", "u", {{"a", {{0, {1}}, {2, {0}}}, {}}}}).has_value());
  CHECK_FALSE(breakdown_script({}).has_value());
  CHECK_FALSE(campaign_script({}).has_value());
  CHECK_FALSE(campaign_script({"t", "w", {"training"}, {{"1", {0}, {1}}}}).has_value());
  CHECK_FALSE(sensitivity_script({}).has_value());
  CHECK_FALSE(scatter_script({"t", "q", 0.05, {{"a", {{0, 1}}}}}).has_value());
}

TEST_CASE("without gnuplot one line says so and the script remains", "[report][plot][errors]") {
  const TemporaryFolder folder;
  const std::string path = ::getenv("PATH");
  ::setenv("PATH", folder.path().c_str(), 1);
  const auto problem = draw_plot(folder.path(), "scaling", *scaling_script(two_series("a")));
  ::setenv("PATH", path.c_str(), 1);
  CHECK(problem.value_or("") == "gnuplot not found: no plots are drawn (Debian: apt install gnuplot-nox)");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("an error of gnuplot is passed on in one line and keeps the old pictures",
          "[report][plot][errors]") {
  if (!have_gnuplot()) return;
  const TemporaryFolder folder;
  write_atomically(folder.path() / "scaling.svg", "old");
  const auto problem = draw_plot(folder.path(), "scaling", {.body = "nonsense\n"});
  CHECK_THAT(
      problem.value_or(""),
      Catch::StartsWith("scaling.svg and scaling.png are not drawn: gnuplot: \"../scaling.gp\" line "));
  CHECK(problem.value_or("").find('\n') == std::string::npos);
  CHECK(read_file(folder.path() / "scaling.svg") == "old");
  CHECK(entries(folder.path()) == 2);
}

TEST_CASE("gnuplot_text never holds a quote that would end it", "[report][plot]") {
  CHECK(gnuplot_text("a'b", 10) == "'a\u2019b'");
  CHECK(gnuplot_text("", 10) == "''");
  CHECK(gnuplot_text("a\nb\tc", 10) == "'a?b?c'");
  CHECK(gnuplot_text("abcdefghijkl", 10) == "'abcdefg...'");
  CHECK(gnuplot_text("\xff", 10) == "'\xef\xbf\xbd'");
}

TEST_CASE("the ideal line starts at the smallest point of a series", "[report][plot]") {
  const ScalingPlot plot{"", "samples/s", {{"a", {{16, {150}}, {8, {100}}}, {}}}};
  const auto script = *scaling_script(plot);
  CHECK(script.body.find("12.5 * x") != std::string::npos);
  CHECK(script.data.find("$l0 << EOD\n8 100 100\n16 150 75\nEOD\n") != std::string::npos);
}

TEST_CASE("intervals become bands in both panels", "[report][plot]") {
  const ScalingPlot plot{"", "samples/s", {{"a", {{8, {100, 80.0, 125.0}}, {16, {150, 120.0, 180.0}}}, {}}}};
  const auto script = *scaling_script(plot);
  CHECK(script.data.find("$b0 << EOD\n8 80 125 100\n16 120 180 150\nEOD\n") != std::string::npos);
  CHECK(script.data.find("$e0 << EOD\n8 80 125 100\n16 60 90 75\nEOD\n") != std::string::npos);
}

TEST_CASE("a breakdown stacks its parts in the unit of the longest bar", "[report][plot]") {
  const auto script =
      *breakdown_script({"", "workers", {"compute", "waiting"}, {{"1", {0.25}}, {"2", {0.25, 0.125}}}});
  CHECK(script.data.find("$b1 << EOD\n0 250 -0.375 0.375 250 250\n1 375 0.625 1.375 250 375\nEOD\n") !=
        std::string::npos);
  CHECK(script.body.find("step [ms]") != std::string::npos);
}

TEST_CASE("times of hours are drawn in hours, under a name of their own", "[report][plot]") {
  const auto script =
      *breakdown_script({"", "workers", {"training"}, {{"1", {36000}}, {"2", {18000}}}, "whole training"});
  CHECK(script.data.find("$b0 << EOD\n0 10 -0.375 0.375 0 10\n1 5 0.625 1.375 0 5\nEOD\n") !=
        std::string::npos);
  CHECK(script.body.find("set ylabel 'whole training [h]'") != std::string::npos);
}

TEST_CASE("a campaign shows its makespan, and in per cent what its devices do", "[report][plot]") {
  const auto script = *campaign_script(two_campaigns("a"));
  CHECK(script.data.find("$h << EOD\n0 3 2.5 4\n1 90 90 90\nEOD\n") != std::string::npos);
  CHECK(script.data.find("$b1 << EOD\n0 100 -0.375 0.375 75 100\n1 100 0.625 1.375 4 100\nEOD\n") !=
        std::string::npos);
  // A bar of 4 % has no room for its number.
  CHECK(script.data.find("$u << EOD\n0 37.5 75\n-1e9 0 0\nEOD\n") != std::string::npos);
}

TEST_CASE("a search shows its progress, and the front of value and memory", "[report][plot]") {
  SearchPlot plot{"t", "samples_per_second", false, {{{10, 4e9}}, {}, {{30, 8e9}}, {{20, 2e9}}, {{25, 9e9}}}};
  CHECK(memory_front(plot) == std::vector<std::size_t>{3, 2});
  const auto script = search_script(plot);
  REQUIRE(script);
  CHECK(script->data.find("$b << EOD\n1 10\n2 10\n3 30\n4 30\n5 30\nEOD") != std::string::npos);
  CHECK(script->body.find("memory of a device [GB]") != std::string::npos);
  plot.smallest = true;
  CHECK(memory_front(plot) == std::vector<std::size_t>{3, 0});
  plot.points = {{{10, 0}}, {{12, 0}}};  // trained settings have no memory
  CHECK(search_script(plot)->body.find("memory") == std::string::npos);
  plot.points.pop_back();
  CHECK_FALSE(search_script(plot));
}

TEST_CASE("the axis of errors has a tick besides zero, whatever the largest error", "[report][plot]") {
  for (const double error : {0.001, 0.0371, 0.041, 0.2, 0.73, 3.1}) {
    const auto script = scatter_script({"t", "step time [s]", 0.02, {{"a", {{1, 1 + error}, {2, 2}}}}});
    REQUIRE(script);
    const auto begin = script->body.rfind("set yrange [-"), ticks = script->body.find("set ytics ('-", begin);
    REQUIRE(ticks != std::string::npos);
    const double end = std::stod(script->body.substr(script->body.find(':', begin) + 1));
    CHECK(std::stod(script->body.substr(ticks + 13)) <= end);
  }
}

namespace {

Results two_algorithms() {
  Results results{"s", {}};
  for (const char* algorithm : {"ring", "tree"}) {
    for (const int workers : {8, 16}) {
      Row row;
      row.set("collective", std::string(algorithm));
      row.set("workers", workers);
      results.rows.push_back(row);
    }
  }
  return results;
}

}  // namespace

TEST_CASE("a campaign stacks training and the reasons to be idle that there are", "[report][plot]") {
  auto results = two_algorithms();
  CHECK(campaign_plot(results, {}).bars.empty());
  for (Row& row : results.rows) {
    row.set("makespan_hours", 4.0);
    row.set("makespan_hours_high", 5.0);
    row.set("device_utilization", 0.7);
    row.set("idle_tail_share", 0.3);
    row.set("idle_fold_share", 0.0);
  }
  const auto plot = campaign_plot(results, {});
  CHECK(plot.parts == std::vector<std::string>{"training", "nothing left to try"});
  REQUIRE(plot.bars.size() == 4);
  CHECK(plot.bars[3].label == "tree, 16");
  CHECK(plot.bars[3].hours.value == 4);
  CHECK(plot.bars[3].hours.high == 5);
  CHECK(plot.bars[3].shares == std::vector<double>{0.7, 0.3});
}

TEST_CASE("a training with faults stacks up to its whole time", "[report][plot]") {
  auto results = two_algorithms();
  CHECK(training_plot(results, {}).bars.empty());
  Row& row = results.rows[2];  // points without faults have no bar
  row.set("training_hours_with_faults", 10.0);
  row.set("useful_share", 0.75);
  row.set("lost_to_checkpoints_seconds", 1800.0);
  row.set("lost_to_restart_seconds", 7200.0);
  row.set("lost_to_jitter_seconds", 3600.0);
  const auto plot = training_plot(results, {});
  CHECK(plot.parts ==
        std::vector<std::string>{"undisturbed training", "checkpoints", "repair and restart", "jitter"});
  CHECK(plot.quantity == "training with faults");
  REQUIRE(plot.bars.size() == 1);
  CHECK(plot.bars[0].seconds == std::vector<double>{23400, 1800, 7200, 3600});
}

namespace {

std::string labels(const Axis& axis) {
  std::string out;
  for (const Tick& tick : axis.ticks) out += tick.label + "|";
  return out;
}

}  // namespace

TEST_CASE("the worker axis has powers of two, thinned out where they do not fit", "[report][plot]") {
  CHECK(labels(power_of_two_axis(1, 64, 400)) == "1|2|4|8|16|32|64|");
  CHECK(labels(power_of_two_axis(1, 1024, 400)) == "1||4||16||64||256||1024|");
  CHECK(labels(power_of_two_axis(8, 8, 400)) == "4|8|16|");
  CHECK(labels(power_of_two_axis(3, 12, 400)) == "4|8|");
}

TEST_CASE("a logarithmic axis has 1, 2, 5 or powers of ten, and always three", "[report][plot]") {
  CHECK(labels(decimal_log_axis(120, 3000)) == "100|200|500|1k|2k|");
  CHECK(labels(decimal_log_axis(1, 1e5)) == "1|10|100|1k|10k|100k|");
  for (double value = 0.01; value < 1e6; value *= 1.37)
    CHECK(decimal_log_axis(value, value).ticks.size() >= 3);
}

TEST_CASE("a linear axis starts on a tick and covers its values", "[report][plot]") {
  CHECK(labels(linear_axis(0, 100, 5)) == "0|20|40|60|80|100|");
  CHECK(labels(linear_axis(64, 103.5, 6)) == "60|70|80|90|100|");
  const auto flat = linear_axis(5, 5, 5);
  CHECK(flat.low <= 5);
  CHECK(flat.high > 5);
}

TEST_CASE("long names of a legend that differ at their ends stay different", "[report][plot]") {
  const std::string start(70, 'a');
  const std::string commands =
      legend_commands(laid_out({{.name = start + "-one"}, {.name = start + "-two"}}, 900), 400);
  CHECK(commands.find("...") != std::string::npos);
  CHECK(commands.find("-one") != std::string::npos);
  CHECK(commands.find("-two") != std::string::npos);
}

TEST_CASE("fifteen series have fifteen looks, and a part has one colour whatever stands beside it",
          "[report][plot]") {
  std::set<std::string> looks, on_page;
  for (std::size_t i = 0; i < 15; ++i) {
    looks.insert(series_line(i));
    on_page.insert(std::string(series_colour(i)) + series_dashes(i));
  }
  CHECK(looks.size() == 15);
  CHECK(on_page.size() == 15);
  CHECK(part_colour("data loading", 2) == std::string(part_colour("data loading", 4)));
  CHECK(part_colour("a part of its own", 1) == std::string(series_colour(1)));
}
