#include "report/page/page.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/page/charts.hpp"
#include "report/plots/results_plots.hpp"
#include "report/results/results_table.hpp"

namespace stepcast {
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
  const Answer answer = answer_of(good, sweep);
  const ScalingPlot scaling = scaling_plot(good, page.published, sweep);
  const std::string charts = throughput_chart(scaling) + efficiency_chart(scaling) +
                             breakdown_chart(breakdown_plot(good, sweep)) +
                             sensitivity_chart(sensitivity_plot(page.sensitivity));
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
             name, kPageStyle, name, escaped(page.description), escaped(answer.scaling),
             escaped(answer.change)) +
         section("Charts", charts.empty() ? "" : "<div class=\"charts\">" + charts + "</div>\n") +
         section("Points", points) + section("Points without results or memory", failures_of(page.results)) +
         section("Published figures", table_of(page.published)) +
         section("Assumptions", assumptions_of(page)) + section("Scenario", scenario_of(page)) +
         section("Inputs and version", inputs_of(page.manifest)) +
         fmt::format("</main><script>{}</script></body></html>\n", kPageScript);
}

}  // namespace stepcast
