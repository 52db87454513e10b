#include "report/plots/results_plots.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "core/os/files.hpp"
#include "report/plots/style.hpp"
#include "report/results/manifest.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {

namespace {

namespace fs = std::filesystem;

// Limits of a plot: gnuplot takes minutes for ten thousand lines or bars.
constexpr std::size_t kMostDrawnLines = 500, kMostDrawnBars = 2000;

/// The value of a column with its interval, if it has one.
PlottedValue plotted(const Row& row, const std::string& column) {
  return {row.number(column).value_or(0), row.number(column + "_low"), row.number(column + "_high")};
}

ScalingPoint scaling_point(const Row& row) {
  ScalingPoint point{row.number("workers").value_or(0), plotted(row, "samples_per_second"), {}};
  if (row.number("efficiency")) point.efficiency = plotted(row, "efficiency");
  return point;
}

/// The ratio of published to forecast throughput; missing if it does not follow from the column.
std::optional<double> throughput_ratio(const Row& row, const std::string& column, double published) {
  const auto forecast = row.number(column);
  if (!forecast || !(*forecast > 0) || !(published > 0)) return std::nullopt;
  for (const char* time : {"step_seconds", "epoch_seconds", "training_hours", "sweep_minutes"}) {
    if (column == time) return *forecast / published;
  }
  const bool proportional = column == "samples_per_second" || column == "speedup" || column == "efficiency";
  return proportional ? std::optional(published / *forecast) : std::nullopt;
}

/// The published figures of one point from a single column, so that the same throughput is not marked twice.
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
    mark.measured = figure.text("measured") == "true";
    marks.push_back(mark);
  }
}

/// The content of a CSV file; no rows if the file does not exist.
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

namespace {

/// The files of a plot for which the disk had no room; draw_plot has removed those of an earlier run.
std::vector<std::string> missing_of(const fs::path& folder, const std::string& name) {
  std::vector<std::string> missing;
  for (const char* type : {".gp", ".svg", ".png"}) {
    if (!fs::exists(folder / (name + type))) missing.push_back(name + type);
  }
  return missing;
}

}  // namespace

DrawnPlots draw_results(const fs::path& folder) {
  const auto file = folder / "results.csv";
  auto results = read_csv(read_file(file), file.string());
  std::erase_if(results.rows, [](const Row& row) { return !row.text("failed").empty(); });
  const auto published = read_if_there(folder / "published.csv");
  const auto manifest = folder / "manifest.json";
  const Manifest run =
      fs::exists(manifest) ? read_manifest(read_file(manifest), manifest.string()) : Manifest{};
  const auto& sweep = run.sweep;
  const auto titled = [&run](auto plot) {  // plots of runs with other settings look alike
    if (!run.settings.empty()) plot.title += fmt::format(" with {}", fmt::join(run.settings, ", "));
    return plot;
  };
  const auto campaigns = titled(campaign_plot(results, sweep));
  const auto lines = titled(scaling_plot(results, published, sweep));
  const bool few_lines = lines.series.size() <= kMostDrawnLines,
             few_bars = results.rows.size() <= kMostDrawnBars;
  const auto scaling = few_lines ? scaling_script(lines) : std::nullopt;
  const std::vector<std::pair<std::string, std::optional<PlotScript>>> plots{
      {"scaling", campaigns.bars.empty() ? scaling : std::nullopt},
      {"breakdown", few_bars ? breakdown_script(titled(breakdown_plot(results, sweep))) : std::nullopt},
      {"training", few_bars ? breakdown_script(titled(training_plot(results, sweep))) : std::nullopt},
      {"campaign", campaign_script(campaigns)},
      {"sensitivity",
       sensitivity_script(titled(sensitivity_plot(read_if_there(folder / "sensitivity.csv"))))}};
  DrawnPlots drawn;
  if (!few_lines || !few_bars)
    drawn.complaints.push_back(
        fmt::format("plots of more than {} lines or {} points are not drawn; this sweep has {} and {}",
                    kMostDrawnLines, kMostDrawnBars, lines.series.size(), results.rows.size()));
  for (const auto& plot : plots) {
    if (!plot.second) continue;
    try {
      const auto problem = draw_plot(folder, plot.first, *plot.second);
      if (problem && std::ranges::find(drawn.complaints, *problem) == drawn.complaints.end())
        drawn.complaints.push_back(*problem);
    } catch (const DiskFull&) {
      drawn.missing.add(folder, missing_of(folder, plot.first));
    }
  }
  return drawn;
}

namespace {

/// A column and its name in the legend.
using Part = std::pair<std::string, std::string>;
using Parts = std::vector<Part>;

/// The parts from the bottom up. The first `kept` parts are always shown, so that their colours do not
/// change.
Parts shown_parts(const Results& results, const Parts& parts, std::size_t kept) {
  Parts shown;
  for (const Part& part : parts) {
    const bool any = std::any_of(results.rows.begin(), results.rows.end(),
                                 [&](const Row& row) { return row.number(part.first).value_or(0) > 0; });
    if (shown.size() < kept || any) shown.push_back(part);
  }
  return shown;
}

std::vector<std::string> names_of(const Parts& parts) {
  std::vector<std::string> names;
  for (const Part& part : parts) names.push_back(part.second);
  return names;
}

std::vector<double> values_of(const Row& row, const Parts& parts) {
  std::vector<double> values;
  for (const Part& part : parts) values.push_back(row.number(part.first).value_or(0));
  return values;
}

/// The labels of bars: the values that distinguish them, and their number of workers if it differs too.
class Labels {
 public:
  Labels(const Results& results, const std::vector<std::string>& sweep)
      : results_(results), series_(series_columns(results, sweep)) {
    const auto other = [&](const Row& row) { return row.text("workers") != results.rows[0].text("workers"); };
    workers_ = series_.empty() || std::ranges::any_of(results.rows, other);
  }

  std::string of(const Row& row) const {
    auto name = series_name(results_, row, series_);
    if (!workers_ && !name.empty()) return name;
    return (name.empty() ? "" : name + ", ") + row.text("workers");
  }
  std::string axis() const {
    if (!workers_) return "point";
    return series_.empty() ? "workers" : "point (last number: workers)";
  }

 private:
  const Results& results_;
  std::vector<std::string> series_;
  bool workers_ = true;
};

/// The rows that have a value in the column.
Results those_with(const std::string& column, Results results) {
  std::erase_if(results.rows, [&](const Row& row) { return !row.number(column); });
  return results;
}

BreakdownPlot stacked(const Results& results, const std::vector<std::string>& sweep, const Parts& parts) {
  const Labels labels(results, sweep);
  BreakdownPlot plot{results.scenario, labels.axis(), names_of(parts), {}};
  for (const Row& row : results.rows) plot.bars.push_back({labels.of(row), values_of(row, parts)});
  return plot;
}

/// Adds two columns: the training time without faults and without the time lost to jitter and stragglers; and
/// the time lost to permanently and temporarily slow workers together [s].
void set_useful_and_slow(Row& row) {
  const auto loss = [&](const char* column) { return std::max(0.0, row.number(column).value_or(0)); };
  const double training =
      *row.number("training_hours_with_faults") * 3600 * row.number("useful_share").value_or(1);
  const double stragglers = loss("lost_to_stragglers_seconds");
  row.set("useful", training - stragglers - loss("lost_to_jitter_seconds"));
  row.set("slow", stragglers + loss("lost_to_slow_workers_seconds"));
}

/// The plot with zero in place of negative parts, which rounding and the discrepancy term give.
BreakdownPlot without_negative(BreakdownPlot plot) {
  for (BreakdownBar& bar : plot.bars) {
    for (double& seconds : bar.seconds) seconds = std::max(0.0, seconds);
  }
  return plot;
}

}  // namespace

BreakdownPlot breakdown_plot(const Results& results, const std::vector<std::string>& sweep) {
  const Parts parts{
      {"compute_seconds", "compute"},           {"exposed_communication_seconds", "exposed communication"},
      {"host_seconds", "waiting for the host"}, {"waiting_seconds", "waiting for the slowest"},
      {"data_loading_seconds", "data loading"}, {"unmodelled_seconds", "not modelled (median)"}};
  return without_negative(stacked(results, sweep, shown_parts(results, parts, 2)));
}

BreakdownPlot training_plot(const Results& results, const std::vector<std::string>& sweep) {
  const Parts parts{{"useful", "undisturbed training"},
                    {"lost_to_checkpoints_seconds", "checkpoints"},
                    {"lost_to_rework_seconds", "done again"},
                    {"lost_to_restart_seconds", "repair and restart"},
                    {"lost_to_missing_workers_seconds", "workers away"},
                    {"slow", "slow workers"},
                    {"lost_to_links_seconds", "failed links"},
                    {"lost_to_jitter_seconds", "jitter"}};
  Results rows = those_with("training_hours_with_faults", results);
  for (Row& row : rows.rows) set_useful_and_slow(row);
  BreakdownPlot plot = without_negative(stacked(rows, sweep, shown_parts(rows, parts, 1)));
  plot.quantity = "training with faults";
  return plot;
}

CampaignPlot campaign_plot(const Results& results, const std::vector<std::string>& sweep) {
  const Results rows = those_with("makespan_hours", results);
  const Parts all{{"device_utilization", "training"},
                  {"idle_optimizer_share", "waiting for the optimizer"},
                  {"idle_fold_share", "waiting for the slowest fold"},
                  {"idle_generation_share", "waiting for the generation"},
                  {"idle_tail_share", "nothing left to try"},
                  {"idle_driver_share", "devices of master and optimizers"}};
  const Parts parts = shown_parts(rows, all, 1);
  const Labels labels(rows, sweep);
  CampaignPlot plot{rows.scenario, labels.axis(), names_of(parts), {}};
  for (const Row& row : rows.rows)
    plot.bars.push_back({labels.of(row), plotted(row, "makespan_hours"), values_of(row, parts)});
  return plot;
}

namespace {

constexpr std::size_t kMostInputs = 20;
constexpr std::size_t kLongestInput = 44;  // [characters] longer names are cut
constexpr double kInputCharacter = 8.6;    // [px] width of a character
constexpr int kInputRow = 30;              // [px]
constexpr int kInputsWidth = 430;          // [px]
constexpr int kInputsTitle = 44;           // [px]
constexpr int kInputsFoot = 64;            // [px] tick labels and axis label
constexpr double kHalfBarHeight = 0.32;    // half height of a bar, in rows

int names_width(const std::vector<Sensitivity>& shares) {
  std::size_t longest = 0;
  for (const auto& share : shares)
    longest = std::max(longest, std::min(display_width(share.name), kLongestInput));
  return 20 + static_cast<int>(kInputCharacter * longest);
}

}  // namespace

std::optional<PlotScript> sensitivity_script(const SensitivityPlot& plot) {
  auto shares = plot.shares;
  if (shares.empty()) return std::nullopt;
  shares.resize(std::min(shares.size(), kMostInputs));
  const int rows = shares.size();
  const int left = names_width(shares);
  const int width = left + kInputsWidth + 60;
  const int height = kInputsFoot + kInputRow * rows + kInputsTitle;

  std::string data = "$s << EOD\n";
  std::string body = frame_commands() + title_commands(plot.title, width, height);
  body +=
      panel_commands({left, left + kInputsWidth, kInputsFoot, kInputsFoot + kInputRow * rows}, width, height);
  for (int row = 0; row < rows; ++row) {
    const auto& share = shares[row];
    const double per_cent = 100 * std::clamp(share.share, 0.0, 1.0);
    data += fmt::format("{0} {1} 0 {0} {2} {3}\n", fixed(per_cent, 3), -row, -row - kHalfBarHeight,
                        -row + kHalfBarHeight);
    body += fmt::format("set label {} {} at graph 0, first {} right offset -0.8,0\n", row + 2,
                        gnuplot_text(shortened_middle(share.name, kLongestInput), kLongestInput), -row);
    body += fmt::format("set label {} '{} %' at first {}, first {} left offset 0.5,0\n", row + 100,
                        fixed(per_cent, per_cent < 9.95 ? 1 : 0), fixed(per_cent, 3), -row);
  }
  body += axis_commands('x', linear_axis(0, 100, 5));
  body += fmt::format("set yrange [{}:0.5]\nunset ytics\nset grid noytics\n", -rows + 0.5);
  body += fmt::format("set xlabel {}\n",
                      gnuplot_text(plot.result.empty() ? "share of the variance explained [%]"
                                                       : "share of the variance of " + plot.result + " [%]",
                                   70));
  body += fmt::format("plot $s using 1:2:3:4:5:6 with boxxyerror lc rgb '{}' fs solid 1 noborder notitle\n",
                      series_colour(0));
  return PlotScript{width, height, data + "EOD\n", body};
}

}  // namespace stepcast
