#include "report/results_plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/atomic_file.hpp"
#include "report/csv.hpp"
#include "report/manifest.hpp"
#include "report/plotted_rows.hpp"
#include "report/series.hpp"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

ScalingPoint scaling_point(const Row& row) {
  ScalingPoint point{row.number("workers").value_or(0), plotted(row, "samples_per_second"), {}};
  if (row.number("efficiency")) point.efficiency = plotted(row, "efficiency");
  return point;
}

/// Published over forecast throughput, as far as the column tells.
std::optional<double> throughput_ratio(const Row& row, const std::string& column, double published) {
  const auto forecast = row.number(column);
  if (!forecast || !(*forecast > 0) || !(published > 0)) return std::nullopt;
  for (const char* time : {"step_seconds", "epoch_seconds", "training_hours", "sweep_minutes"}) {
    if (column == time) return *forecast / published;
  }
  const bool proportional = column == "samples_per_second" || column == "speedup" || column == "efficiency";
  return proportional ? std::optional(published / *forecast) : std::nullopt;
}

/// The published figures of one point, all of one column: the same throughput in another is not marked again.
void append_published(std::vector<PublishedPoint>& marks, const Results& results, const Row& row,
                      const Results& published) {
  std::string column;
  for (const Row& figure : published.rows) {
    const auto value = figure.number("published");
    const bool same_point = figure.text("point") == row.text("point") &&
                            at(published, figure, "scenario") == at(results, row, "scenario");
    if (!value || !same_point || figure.text("relation") != "=") continue;
    const auto ratio = throughput_ratio(row, figure.text("column"), *value);
    if (!ratio || (!column.empty() && column != figure.text("column"))) continue;
    column = figure.text("column");
    PublishedPoint mark{
        row.number("workers").value_or(0), *ratio * row.number("samples_per_second").value_or(0), {}};
    if (const auto efficiency = row.number("efficiency")) mark.efficiency = *ratio * *efficiency;
    marks.push_back(mark);
  }
}

/// Nothing where the file is not there.
Results read_if_there(const fs::path& file) {
  return fs::exists(file) ? read_csv(read_file(file), file.string()) : Results{};
}

}  // namespace

ScalingPlot scaling_plot(const Results& results, const Results& published,
                         const std::vector<std::string>& sweep) {
  const auto series = series_columns(results, sweep);
  ScalingPlot plot{results.scenario, "samples/s", {}};
  std::map<std::string, std::size_t> index;
  for (const Row& row : results.rows) {
    const auto name = series_name(results, row, series);
    const auto [found, added] = index.emplace(name, plot.series.size());
    if (added) plot.series.push_back({name, {}, {}});
    ScalingSeries& line = plot.series[found->second];
    line.points.push_back(scaling_point(row));
    append_published(line.published, results, row, published);
  }
  return plot;
}

SensitivityPlot sensitivity_plot(const Results& sensitivity) {
  if (sensitivity.rows.empty()) return {};
  const Row& last = sensitivity.rows.back();
  const auto same = [&](const Row& row) {
    return row.text("point") == last.text("point") && row.text("column") == last.text("column") &&
           at(sensitivity, row, "scenario") == at(sensitivity, last, "scenario");
  };
  const auto column = last.text("column");
  SensitivityPlot plot{fmt::format("{}, {}", to_text(at(sensitivity, last, "scenario")), last.text("point")),
                       column == "step_seconds" ? "step time" : column,
                       {}};
  for (const Row& row : sensitivity.rows) {
    if (same(row)) plot.shares.push_back({row.text("assumption"), row.number("variance_share").value_or(0)});
  }
  return plot;
}

Results sensitivity_results(const std::string& scenario, const std::string& point, const std::string& column,
                            const std::vector<Sensitivity>& shares) {
  Results results{scenario, {}};
  for (const auto& [name, share] : shares) {
    Row row;
    row.set("scenario", scenario);
    row.set("point", point);
    row.set("column", column);
    row.set("assumption", name);
    row.set("variance_share", share);
    results.rows.push_back(std::move(row));
  }
  return results;
}

std::vector<std::string> draw_results(const fs::path& folder) {
  const auto file = folder / "results.csv";
  const auto results = read_csv(read_file(file), file.string());
  const auto published = read_if_there(folder / "published.csv");
  const auto manifest = folder / "manifest.json";
  const auto sweep = fs::exists(manifest) ? read_manifest(read_file(manifest), manifest.string()).sweep
                                          : std::vector<std::string>{};
  const auto campaigns = campaign_plot(results, sweep);
  const auto scaling = scaling_script(scaling_plot(results, published, sweep));
  const std::vector<std::pair<std::string, std::optional<PlotScript>>> plots{
      {"scaling", campaigns.bars.empty() ? scaling : std::nullopt},
      {"breakdown", breakdown_script(breakdown_plot(results, sweep))},
      {"training", breakdown_script(training_plot(results, sweep))},
      {"campaign", campaign_script(campaigns)},
      {"sensitivity", sensitivity_script(sensitivity_plot(read_if_there(folder / "sensitivity.csv")))}};
  std::vector<std::string> problems;
  for (const auto& [name, script] : plots) {
    const auto problem = script ? draw_plot(folder, name, *script) : std::nullopt;
    const bool known = problem && std::find(problems.begin(), problems.end(), *problem) != problems.end();
    if (problem && !known) problems.push_back(*problem);
  }
  return problems;
}

}  // namespace stepcast
