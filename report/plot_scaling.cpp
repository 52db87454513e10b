#include "report/plot_scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/plot_axes.hpp"
#include "report/plot_legend.hpp"
#include "report/plot_scaling_data.hpp"
#include "report/plot_style.hpp"
#include "report/results.hpp"

namespace stepcast {
namespace {

constexpr int kWidth = 960;        // [px]
constexpr int kPanelHeight = 330;  // [px]
constexpr int kTitle = 50;         // [px]
constexpr int kBelowPanel = 60;    // [px] tick labels and axis label
constexpr int kPanelWidth = 385;   // [px]

/// Ideal lines this close together are drawn as one.
constexpr double kSameRate = 0.1;

constexpr const char* kIdealStyle = "lc rgb '#808080' lw 1.3 dt (8,5)";
constexpr const char* kPublishedStyle = "pt 12 ps 1.15 lw 1.5";

bool scales(const ScalingSeries& series) {
  const auto& points = series.points;  // by workers
  return !points.empty() && points.front().workers < points.back().workers;
}

/// Throughput of one worker if nothing were lost, for each series of several numbers of workers.
std::vector<double> ideal_rates(const std::vector<ScalingSeries>& all) {
  std::vector<double> rates;
  for (const auto& series : all) {
    if (!scales(series)) continue;
    const double rate = series.points.front().throughput.value / series.points.front().workers;
    const bool drawn =
        std::any_of(rates.begin(), rates.end(), [&](double r) { return std::abs(r / rate - 1) < kSameRate; });
    if (!drawn) rates.push_back(rate);
  }
  return rates;
}

/// The bands, lines and published points of one panel. `column` of `$lN`; `band` and `points` name the
/// blocks.
std::string curves(const std::vector<ScalingSeries>& all, int column, char band, char points) {
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* colour = series_colour(i);
    const auto* published_colour = all.size() > 1 ? colour : "#000000";
    const char* how = all[i].points.size() == 1 ? "using 1:4:($1*0.94):($1*1.06):2:3 with boxxyerror"
                                                : "using 1:2:3 with filledcurves";
    const auto interval = fmt::format("{} lc rgb '{}' fs transparent solid 0.18 noborder", how, colour);
    const bool bands = std::any_of(all[i].points.begin(), all[i].points.end(), [&](const auto& p) {
      return band == 'b' ? has_interval(p.throughput) : p.efficiency && has_interval(*p.efficiency);
    });
    if (bands) out += fmt::format(", \\\n  ${}{} {} notitle", band, i, interval);
    if (!all[i].points.empty()) {
      const auto line = fmt::format(", \\\n  $l{} using 1:{} with ", i, column);
      out += fmt::format("{0}lines {1} notitle{0}points {2} notitle", line, series_line(i), series_points(i));
    }
    const bool marks = points == 'p' ? !all[i].published.empty()
                                     : std::any_of(all[i].published.begin(), all[i].published.end(),
                                                   [](const auto& p) { return p.efficiency.has_value(); });
    if (marks)
      out += fmt::format(", \\\n  ${}{} using 1:2 with points {} lc rgb '{}' notitle", points, i,
                         kPublishedStyle, published_colour);
  }
  return out;
}

std::vector<LegendEntry> entries_of(const std::vector<ScalingSeries>& all) {
  std::vector<LegendEntry> entries;
  bool band = false;
  bool published = false;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& name = all[i].name;
    entries.push_back({series_line(i), series_points(i), name.empty() ? "forecast" : name});
    published = published || !all[i].published.empty();
    for (const auto& p : all[i].points)
      band = band || has_interval(p.throughput) || (p.efficiency && has_interval(*p.efficiency));
  }
  if (band) entries.push_back({"lc rgb '#D2D2D2' lw 9", "", "5 % to 95 %"});
  if (published) entries.push_back({"", std::string(kPublishedStyle) + " lc rgb '#000000'", "published"});
  entries.push_back({kIdealStyle, "", "ideal"});
  return entries;
}

Axis efficiency_axis(const ScalingExtent& extent) {
  const double least = 100 * std::min(extent.least, 1.0);
  return linear_axis(least < 50 ? 0 : least - 5, std::max(100.0, 100 * extent.most) + 2, 6);
}

}  // namespace

std::optional<PlotScript> scaling_script(const ScalingPlot& plot) {
  const auto all = drawable(plot.series);
  if (std::none_of(all.begin(), all.end(), scales)) return std::nullopt;
  const auto extents = extents_of(all);

  const auto legend = laid_out(entries_of(all), kWidth);
  const int bottom = legend.height + kBelowPanel;
  const int height = bottom + kPanelHeight + kTitle;
  const auto panel = [&](int left) {
    return panel_commands({left, left + kPanelWidth, bottom, bottom + kPanelHeight}, kWidth, height);
  };
  const auto& throughput = extents.throughput;
  std::string body = "set multiplot\n" + frame_commands() + title_commands(plot.title, kWidth, height);
  body += "set xlabel 'workers'\nset logscale x\n";
  body += axis_commands('x', power_of_two_axis(extents.workers.least, extents.workers.most, kPanelWidth));
  body += panel(80) + "set logscale y\n" +
          axis_commands('y', decimal_log_axis(throughput.least, throughput.most));
  body += fmt::format("set ylabel {}\nplot NaN notitle",
                      gnuplot_text("throughput [" + plot.throughput_unit + "]", 60));
  for (const double rate : ideal_rates(all))
    body += fmt::format(", \\\n  {} * x with lines {} notitle", shortest(rate), kIdealStyle);
  body += curves(all, 2, 'b', 'p') + "\nunset label 1\n";
  body += panel(555) + "unset logscale y\n" + axis_commands('y', efficiency_axis(extents.efficiency));
  body += fmt::format("set ylabel 'efficiency [%]'\nplot 100 with lines {} notitle{}\n", kIdealStyle,
                      curves(all, 3, 'e', 'q'));
  body += legend_commands(legend, height) + "unset multiplot\n";
  return PlotScript{kWidth, height, scaling_data(all) + legend_data(legend), body};
}

}  // namespace stepcast
