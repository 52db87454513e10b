#include "report/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/plots/results_plots.hpp"
#include "report/results/results_table.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {

namespace {

constexpr double kLeastEfficiency = 0.5;  // half of the devices' work is lost below it
constexpr double kGoodEfficiency = 0.8;

double value(const Row& row, const char* column) {
  return row.number(column).value_or(0);
}

bool fits(const Row& row) {
  return row.text("fits") != "false";
}

/// The rows of the series with the highest throughput, by workers.
struct Best {
  std::string name;
  std::vector<const Row*> rows;
};

Best best_series(const Results& results, const std::vector<std::string>& sweep) {
  const auto columns = series_columns(results, sweep);
  std::map<std::string, std::vector<const Row*>> all;
  for (const Row& row : results.rows) {
    if (fits(row)) all[series_name(results, row, columns)].push_back(&row);
  }
  Best best;
  const auto fewer = [](const Row* a, const Row* b) { return value(*a, "workers") < value(*b, "workers"); };
  double highest = -1;
  for (auto& [name, rows] : all) {
    std::ranges::stable_sort(rows, fewer);
    if (value(*rows.back(), "samples_per_second") <= highest) continue;
    highest = value(*rows.back(), "samples_per_second");
    best = {all.size() > 1 ? name : "", rows};
  }
  return best;
}

/// The part of the step that measurements add; 0 if it is less than half a percent.
double unmodelled_share(const Row& row) {
  const double share = row.number("unmodelled_seconds").value_or(0) / value(row, "step_seconds");
  return share < 0.005 ? 0 : share;
}

/// "communication is 57 % of a step, and what measurements add is 12 %".
std::string main_part(const Row& row) {
  const std::string part = row.text("bottleneck");  // "communication (57 %)"
  const auto open = part.find(" (");
  if (open == std::string::npos) return "";
  const double unmodelled = unmodelled_share(row);
  return fmt::format(
      "{} is {} of a step{}", part.substr(0, open), part.substr(open + 2, part.size() - open - 3),
      unmodelled > 0 ? fmt::format(", and what measurements add is {:.0f} %", 100 * unmodelled) : "");
}

std::string percent(double share) {
  return fixed(100 * share, 1) + " %";
}

/// "1 worker", "64 workers".
std::string workers_of(const Row& row) {
  const std::string workers = row.text("workers");
  return workers + (workers == "1" ? " worker" : " workers");
}

std::string efficiency_at(const Row& row) {
  return fmt::format("the efficiency is {} at {}", percent(value(row, "efficiency")), workers_of(row));
}

/// " (100 % at 4, below 80 % from 16 on)": the row that the efficiency compares with, and the
/// number of workers from which on it is below 80 %.
std::string efficiency_range(const std::vector<const Row*>& rows) {
  const auto low =
      std::ranges::find_if(rows, [](const Row* row) { return value(*row, "efficiency") < kGoodEfficiency; });
  const std::string from =
      low == rows.end() ? "" : fmt::format(", below 80 % from {} on", (*low)->text("workers"));
  return fmt::format(" (100 % at {}{})", rows.front()->text("workers"), from);
}

/// A sentence about the points that need more memory than a device has.
std::string left_out(const Results& results) {
  const auto count = std::ranges::count_if(results.rows, [](const Row& row) { return !fits(row); });
  if (count == 0) return "";
  return fmt::format(" {} of {} points do not fit into memory and do not count here.", count,
                     results.rows.size());
}

}  // namespace

std::string answer_of(const Results& results, const std::vector<std::string>& sweep) {
  if (results.rows.empty()) return "No point has results.";
  const Best best = best_series(results, sweep);
  if (best.rows.empty()) {
    const std::string why = results.rows.front().text("why_not");
    return "No point of this sweep fits into the memory of its devices" +
           (why.empty() ? "." : fmt::format("; {}: {}.", results.rows.front().text("point"), why));
  }
  const std::string rest = left_out(results);
  const Row& last = *best.rows.back();
  const std::string of = best.name.empty() ? "" : fmt::format(" ({})", best.name);
  if (best.rows.size() == 1 || !last.number("efficiency"))
    return fmt::format("At {}{} a step takes {}; {}.{}", workers_of(last), of,
                       human(Seconds{value(last, "step_seconds")}), main_part(last), rest);
  const auto peak = std::ranges::max_element(
      best.rows, {}, [](const Row* row) { return value(*row, "samples_per_second"); });
  auto end = best.rows.begin();
  for (auto at = best.rows.begin(); at <= peak; ++at) {
    if (value(**at, "efficiency") >= kLeastEfficiency) end = at;
  }
  if (end + 1 == best.rows.end())
    return fmt::format("Scaling{} does not end within this sweep: {}{}, and {}.{}", of, efficiency_at(last),
                       efficiency_range(best.rows), main_part(last), rest);
  const Row& next = **(end + 1);
  const std::string there =
      end == peak ? "throughput is highest there"
                  : fmt::format("the efficiency is {} there", percent(value(**end, "efficiency")));
  return fmt::format("Scaling{} ends at {}: {}, and {} at {}{}, where {}.{}", of, workers_of(**end), there,
                     (end == peak ? "the efficiency is " : "") + percent(value(next, "efficiency")),
                     next.text("workers"), efficiency_range(best.rows), main_part(next), rest);
}

namespace {

constexpr std::size_t kMostRows = 2000;

std::string section(const std::string& heading, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section><h2>{}</h2>\n{}</section>\n", heading, content);
}

/// A table whose columns sort when their header is pressed.
std::string html_table(const Table& table) {
  if (table.columns.empty() || table.rows.empty()) return "";
  std::string html = "<div class=\"wide\"><table class=\"sorts\"><thead><tr>";
  for (const TableColumn& column : table.columns)
    html += fmt::format("<th scope=\"col\"><button type=\"button\">{}{}</button></th>",
                        escaped(column.header), column.unit.empty() ? "" : " [" + escaped(column.unit) + "]");
  html += "</tr></thead><tbody>\n";
  for (const auto& row : table.rows) {
    html += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i)
      html += fmt::format("<td{}>{}</td>", table.columns[i].align == Align::right ? " class=\"number\"" : "",
                          escaped(row[i]));
    html += "</tr>\n";
  }
  return html + "</tbody></table></div>\n";
}

Table text_table(const std::vector<std::string>& headers, std::vector<std::vector<std::string>> rows) {
  Table table;
  for (const std::string& header : headers) table.columns.push_back({header, "", Align::left});
  table.rows = std::move(rows);
  return table;
}

/// All columns of a file of results as text.
std::string table_of(const Results& results) {
  std::vector<std::vector<std::string>> rows;
  auto names = columns(results);
  std::erase(names, "scenario");
  for (const Row& row : results.rows) {
    rows.emplace_back();
    for (const std::string& name : names) {
      const auto* number = std::get_if<double>(&row.at(name));
      rows.back().push_back(number != nullptr ? fmt::format("{:.4g}", *number) : row.text(name));
    }
  }
  return html_table(text_table(names, std::move(rows)));
}

std::string failures_of(const Results& results) {
  std::vector<std::vector<std::string>> rows;
  for (const Row& row : results.rows) {
    if (const std::string reason = row.text("failed"); !reason.empty())
      rows.push_back({row.text("point"), reason});
    if (const std::string reason = row.text("why_not"); !reason.empty())
      rows.push_back({row.text("point"), "does not fit: " + reason});
  }
  return html_table(text_table({"point", "reason"}, std::move(rows)));
}

std::string assumptions_of(const Page& page) {
  std::vector<std::vector<std::string>> rows;
  for (const PageAssumption& one : page.assumptions) rows.push_back({one.key, one.range, one.why});
  return html_table(text_table({"key", "range", "reason"}, std::move(rows)));
}

std::string lines_of(const std::vector<std::string>& lines) {
  std::string html;
  for (const std::string& line : lines) html += "<p>" + escaped(line) + "</p>\n";
  return html;
}

std::string inputs_of(const Manifest& manifest) {
  std::vector<std::vector<std::string>> rows;
  for (const InputFile& input : manifest.inputs) rows.push_back({input.role, input.path, input.sha256});
  return fmt::format("<p>stepcast {}, seed {}.</p>\n", escaped(manifest.version), manifest.seed) +
         html_table(text_table({"role", "file", "SHA-256"}, std::move(rows)));
}

std::string scenario_of(const Page& page) {
  std::string html;
  for (const std::string& setting : page.settings)
    html += "<p><code>--set " + escaped(setting) + "</code></p>\n";
  return html + "<pre>" + escaped(page.scenario_text) + "</pre>\n";
}

}  // namespace

std::string to_html(const Page& page) {
  const std::vector<std::string>& sweep = page.manifest.sweep;
  Results good = page.results;
  std::erase_if(good.rows, [](const Row& row) { return !row.text("failed").empty(); });
  Results figures = page.published;
  if (figures.rows.empty()) figures.scenario = page.results.scenario;
  figures.rows.insert(figures.rows.end(), page.measured_figures.begin(), page.measured_figures.end());
  const ScalingPlot scaling = scaling_plot(good, figures, sweep);
  const std::string charts =
      throughput_chart(scaling) + efficiency_chart(scaling) + breakdown_chart(breakdown_plot(good, sweep)) +
      campaign_chart(campaign_plot(good, sweep)) + sensitivity_chart(sensitivity_plot(page.sensitivity));
  std::vector<std::string> leading = sweep;
  std::erase(leading, "workers");
  Results listed = good;
  if (listed.rows.size() > kMostRows) listed.rows.resize(kMostRows);
  std::string points =
      html_table(results_table(listed, leading)) + html_table(own_columns_table(listed, leading));
  if (good.rows.size() > kMostRows)
    points += fmt::format("<p>{} of {} points; results.csv has all.</p>\n", kMostRows, good.rows.size());
  const std::string name = escaped(page.results.scenario);
  return fmt::format(
             "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
             "content=\"width=device-width\"><title>{} - stepcast</title><link rel=\"icon\" "
             "href=\"data:,\">\n<style>{}</style></head>\n"
             "<body><main><h1>{}</h1>\n<p>{}</p>\n<p class=\"answer\">{} {}</p>\n",
             name, kPageStyle, name, escaped(page.description), escaped(answer_of(good, sweep)),
             escaped(page.change)) +
         section("Charts", charts.empty() ? "" : "<div class=\"charts\">" + charts + "</div>\n") +
         section("Points", points) + section("What helps", lines_of(page.advice)) +
         section("Not known", lines_of(page.doubts)) + section("Measurements", lines_of(page.measured)) +
         section("Points without results or memory", failures_of(page.results)) +
         section("Published figures", table_of(page.published)) +
         section("Assumptions", assumptions_of(page)) + section("Scenario", scenario_of(page)) +
         section("Inputs and version", inputs_of(page.manifest)) +
         fmt::format("</main><script>{}</script></body></html>\n", kPageScript);
}

const char* const kPageStyle = R"(
body { font: 16px/1.5 system-ui, sans-serif; color: #222; background: #fff; margin: 0 }
main { max-width: 1340px; margin: 0 auto; padding: 0 20px 40px }
h1 { margin-bottom: 0 }
.answer { font-size: 1.25em; border-left: 5px solid #0072b2; padding: 8px 16px; background: #f3f7fa }
.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(560px, 100%), 1fr)); gap: 20px; align-items: start }
p, h1, pre, figcaption { overflow-wrap: anywhere } .note { color: #555; font-size: 14px; margin: 4px 0 }
figure { margin: 0; min-width: 0 } figcaption { font-weight: 600 }
svg { width: 100%; height: auto } svg text { font-size: 12px; fill: #444 } .grid { stroke: #ddd } .ideal { fill: none; stroke: #808080; stroke-dasharray: 8 5 }
.legend button { text-align: left } .legend .line { width: 30px; height: 10px; margin-right: 6px }
.legend { display: flex; flex-wrap: wrap; gap: 6px 14px; margin: 4px 0 }
.key { display: inline-block; width: 12px; height: 12px; margin-right: 6px }
button { font: inherit; background: none; border: 0; padding: 2px; cursor: pointer; color: inherit }
button[aria-pressed=false] { opacity: .4; text-decoration: line-through }
.wide { overflow-x: auto; margin-bottom: 16px } table { border-collapse: collapse; font-size: 14px }
th { text-align: left; vertical-align: bottom; border-bottom: 2px solid #888 } th button { font-weight: 600; text-align: left }
th[aria-sort=ascending] button::after { content: " \2191" } th[aria-sort=descending] button::after { content: " \2193" }
td { padding: 3px 12px 3px 2px; border-bottom: 1px solid #eee; vertical-align: top } .number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
pre { overflow-x: auto; background: #f6f6f6; padding: 12px; font-size: 13px }
@media (max-width: 600px) { main { padding: 0 10px 30px } svg text { font-size: 16px } }
@media print { button { color: #222 } .charts { display: block } }
)";

const char* const kPageScript = R"(
"use strict";
for (const table of document.querySelectorAll("table.sorts")) {
  const headers = [...table.tHead.rows[0].cells];
  headers.forEach((header, column) => header.firstChild.addEventListener("click", () => {
    const up = header.getAttribute("aria-sort") !== "ascending";
    for (const other of headers) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", up ? "ascending" : "descending");
    const key = row => { const text = row.cells[column].textContent, number = parseFloat(text); return isNaN(number) ? text : number };
    const order = (a, b) => typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1;
    const rows = [...table.tBodies[0].rows].map(row => [key(row), row]);
    rows.sort((a, b) => up ? order(a[0], b[0]) : order(b[0], a[0]));
    table.tBodies[0].append(...rows.map(row => row[1]));
  }));
}
for (const button of document.querySelectorAll("[data-toggle]")) {
  button.addEventListener("click", () => {
    const shown = button.getAttribute("aria-pressed") !== "true";
    button.setAttribute("aria-pressed", shown);
    for (const part of button.closest("figure").querySelectorAll(`[data-series="${button.dataset.toggle}"]`))
      part.style.display = shown ? "" : "none";
  });
}
)";

}  // namespace stepcast
