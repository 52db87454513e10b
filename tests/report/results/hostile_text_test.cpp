#include <catch2/catch.hpp>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>
#include <vector>

#include "core/os/files.hpp"
#include "report/plots/results_plots.hpp"
#include "report/plots/style.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"
#include "report/timeline/chrome_trace.hpp"
#include "tests/report/have_gnuplot.hpp"
#include "tests/report/temporary_folder.hpp"

// Text from users' files goes into tables, CSV, JSON, plots and timelines, as it is and without effect.

using namespace stepcast;

namespace {

/// Texts that shells, gnuplot, spreadsheets, HTML, JSON, terminals and paths would act on.
const std::vector<std::string> kHostile{"$(touch pwned)",
                                        "`touch pwned`",
                                        "; touch pwned",
                                        "| touch pwned",
                                        "&& touch pwned",
                                        "\n touch pwned",
                                        "> pwned",
                                        "${HOME}",
                                        "$HOME",
                                        "!touch pwned",
                                        "'; touch pwned; '",
                                        "\"; touch pwned; \"",
                                        "' . system('touch pwned') . '",
                                        "\" . system(\"touch pwned\") . \"",
                                        "'\nsystem 'touch pwned'\n'",
                                        "@macro",
                                        "{/Symbol a}",
                                        "%c",
                                        "%n%s%s%s",
                                        "\\\"",
                                        "\\",
                                        "'",
                                        "''",
                                        "end\nEOD\nset output 'pwned'",
                                        "$data << EOD",
                                        "=1+1",
                                        "=HYPERLINK(\"http://x\",\"y\")",
                                        "+cmd|' /C calc'!A0",
                                        "-2+3+cmd|' /C calc'!A0",
                                        "@SUM(1+9)*cmd|'x'!A0",
                                        "\t=1+1",
                                        "\r=1+1",
                                        "'=1+1",
                                        "''=1+1",
                                        "=cmd|'/c touch pwned'!A1,\"b\"",
                                        "<script>alert(1)</script>",
                                        "</svg><script>alert(1)</script>",
                                        "<img src=x onerror=alert(1)>",
                                        "&lt;b&gt;",
                                        "]]><!--",
                                        "\" onload=\"alert(1)",
                                        "\x1b[2J\x1b]0;title\x07",
                                        "\b\b\b",
                                        "a\rb",
                                        std::string("nul\0byte", 8),
                                        "\xff\xfe\xc0\xaf",
                                        "\xe2\x80\xae"
                                        "gnp.exe",
                                        "../../pwned",
                                        "/etc/passwd",
                                        std::string(5000, 'A'),
                                        "#comment",
                                        ",,,\"",
                                        "{\"a\":1}",
                                        "null",
                                        "NaN",
                                        "-0",
                                        "1e999"};

Row row_of(const std::string& text, double workers) {
  Row row;
  row.set("point", text);
  row.set("model", text);
  row.set("workers", workers);
  row.set("step_seconds", 0.1 * workers);
  row.set("compute_seconds", 0.1);
  row.set("exposed_communication_seconds", 0.1);
  row.set("samples_per_second", workers);
  row.set("efficiency", 1.0);
  row.set("strategy.kind", text);
  return row;
}

Results all_rows() {
  Results results{"hostile", {}};
  double workers = 0;
  for (const std::string& text : kHostile) results.rows.push_back(row_of(text, ++workers));
  return results;
}

}  // namespace

TEST_CASE("hostile texts read back from CSV as they were, and none is a formula there", "[report][hostile]") {
  REQUIRE(kHostile.size() >= 50);
  for (const std::string& text : kHostile) {
    CAPTURE(text);
    const std::string csv = to_csv({"hostile", {row_of(text, 1)}});
    const Results read = read_csv(csv, "results.csv");
    REQUIRE(read.rows.size() == 1);
    CHECK(read.rows[0].text("point") == text);
    const std::string record = csv.substr(csv.find('\n') + 1);
    const std::size_t begin = record.find(',') + 1;  // after the scenario
    const char first = record[begin] == '"' ? record[begin + 1] : record[begin];
    const bool number = text == "-0" || text.find_first_not_of("0123456789.eE+-") == std::string::npos;
    if (!number) CHECK(std::string("=+-@\t\r").find(first) == std::string::npos);
  }
}

TEST_CASE("the sign of a relation is not taken for a formula", "[report][hostile]") {
  Row row;
  row.set("relation", "=");
  CHECK(to_csv({"s", {row}}) == "scenario,relation\ns,=\n");
}

TEST_CASE("hostile texts are data in JSON and in timelines", "[report][hostile]") {
  const Results results = all_rows();
  const Results read = read_json_lines(to_json_lines(results), "results.jsonl");
  REQUIRE(read.rows.size() == kHostile.size());
  for (std::size_t i = 0; i < kHostile.size(); ++i)
    CHECK(read.rows[i].text("point") == valid_utf8(kHostile[i]));
  Timeline timeline;
  for (std::size_t i = 0; i < kHostile.size(); ++i) {
    timeline.ranks.push_back({static_cast<int>(i), kHostile[i]});
    Span span;
    span.rank = i;
    span.name = timeline.name(kHostile[i]);
    span.end = 1;
    timeline.add(span);
  }
  std::ostringstream out;
  write_chrome_trace(out, timeline);
  const auto parsed = nlohmann::json::parse(out.str(), nullptr, false);
  CHECK_FALSE(parsed.is_discarded());
}

TEST_CASE("hostile texts move no cursor of a terminal", "[report][hostile]") {
  for (const std::string& text : kHostile) {
    for (const unsigned char c : without_controls(text)) CHECK((c >= 32 && c != 127));
  }
}

TEST_CASE("hostile texts in a plot run no command, write no file and stay text", "[report][hostile][plot]") {
  if (!have_gnuplot()) return;
  const TemporaryFolder folder;
  const auto inside = folder.path() / "results";
  std::filesystem::create_directories(inside);
  write_atomically(inside / "results.csv", to_csv(all_rows()));
  write_atomically(
      inside / "manifest.json",
      "{\"version\":\"1\",\"scenario\":\"hostile\",\"command\":[],\"seed\":1,\"sweep\":[\"strategy.kind\"],"
      "\"inputs\":[],\"date\":\"\",\"fidelities\":[]}\n");
  const DrawnPlots drawn = draw_results(inside);
  CHECK(drawn.complaints.empty());
  PlotScript script;
  for (std::size_t i = 0; i < kHostile.size(); ++i)
    script.body +=
        "set label " + std::to_string(i + 1) + " " + gnuplot_text(kHostile[i], 40) + " at graph 0.5,0.5\n";
  script.body += "set title " + gnuplot_text(kHostile[12], 0) + "\nplot x\n";
  CHECK(draw_plot(inside, "labels", script) == std::nullopt);
  CHECK(entries(folder.path()) == 1);
  for (const auto& entry : std::filesystem::directory_iterator(inside)) {
    const std::string name = entry.path().filename().string();
    CHECK(name.find("pwned") == std::string::npos);
    if (entry.path().extension() != ".svg") continue;
    const std::string svg = read_file(entry.path());
    CHECK(svg.find("<script>alert") == std::string::npos);
    CHECK(svg.find("<img") == std::string::npos);
  }
}
