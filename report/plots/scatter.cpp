#include "report/plots/scatter.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/plots/style.hpp"
#include "report/results/results.hpp"

namespace stepcast {
namespace {

constexpr int kPanel = 440;        // [px] both sides
constexpr int kErrorPanel = 110;   // [px]
constexpr int kGap = 22;           // [px] between the panels
constexpr int kScatterLeft = 85;   // [px]
constexpr int kScatterRight = 35;  // [px]
constexpr int kScatterFoot = 62;   // [px] tick labels and axis label

constexpr const char* kBandStyle = "lc rgb '#E2E2E2'";
constexpr const char* kEqualStyle = "lc rgb '#808080' lw 1.3";

struct ScatterExtent {
  double least = HUGE_VAL;
  double most = 0;
  double largest_error = 0;  ///< a fraction
};

ScatterExtent extent_of(const ScatterPlot& plot) {
  ScatterExtent extent;
  for (const auto& series : plot.series) {
    for (const auto& [measured, predicted] : series.points) {
      extent.least = std::min({extent.least, measured, predicted});
      extent.most = std::max({extent.most, measured, predicted});
      extent.largest_error = std::max(extent.largest_error, std::abs(predicted / measured - 1));
    }
  }
  return extent;
}

std::vector<LegendEntry> entries_of(const ScatterPlot& plot) {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < plot.series.size(); ++i)
    entries.push_back({"", series_points(i), plot.series[i].name});
  entries.push_back({kEqualStyle, "", "equal"});
  entries.push_back(
      {std::string(kBandStyle) + " lw 9", "", fmt::format("within {} %", shortest(100 * plot.band))});
  return entries;
}

/// Gnuplot data blocks. `$a`: an end of the axis and the band there; `$sN`: measured, predicted, error in per
/// cent.
std::string data_of(const ScatterPlot& plot, const Axis& axis) {
  std::string data = "$a << EOD\n";
  for (const double x : {axis.low, axis.high}) {
    data +=
        fmt::format("{} {} {}\n", shortest(x), shortest(x * (1 - plot.band)), shortest(x * (1 + plot.band)));
  }
  data += "EOD\n";
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    data += fmt::format("$s{} << EOD\n", i);
    for (const auto& [measured, predicted] : plot.series[i].points) {
      data += fmt::format("{} {} {}\n", shortest(measured), shortest(predicted),
                          shortest(100 * (predicted / measured - 1)));
    }
    data += "EOD\n";
  }
  return data;
}

/// The plot entries of all series: `column` of `$sN` against the measured value.
std::string points(const ScatterPlot& plot, int column) {
  std::string out;
  for (std::size_t i = 0; i < plot.series.size(); ++i) {
    out += fmt::format(", \\\n  $s{} using 1:{} with points {} notitle", i, column, series_points(i));
  }
  return out + "\n";
}

/// The x axis of the upper panel: that of the lower panel without labels.
Axis unlabelled(Axis axis) {
  for (Tick& tick : axis.ticks) tick.label.clear();
  return axis;
}

/// The gnuplot commands for the lower panel: the error in per cent, with the band.
std::string error_panel(const ScatterPlot& plot, const ScatterExtent& extent) {
  const double most = 100 * std::max(1.5 * plot.band, 1.1 * extent.largest_error);
  Axis axis{-most, most, {}};
  for (const Tick& tick : linear_axis(0, most, 3).ticks) {
    if (tick.position > 0) axis.ticks.insert(axis.ticks.begin(), {-tick.position, "-" + tick.label});
    axis.ticks.push_back(tick);
  }
  return axis_commands('y', axis) +
         fmt::format(
             "set ylabel 'error [%]'\nplot $a using 1:({1}):({2}) with filledcurves {0} fs solid 1 noborder "
             "notitle, \\\n  0 with lines {3} notitle",
             kBandStyle, -100 * plot.band, 100 * plot.band, kEqualStyle) +
         points(plot, 3);
}

}  // namespace

std::optional<PlotScript> scatter_script(const ScatterPlot& given) {
  auto plot = given;
  for (auto& series : plot.series) {
    std::erase_if(series.points, [](const auto& p) { return !(p.first > 0 && p.second > 0); });
  }
  std::erase_if(plot.series, [](const auto& series) { return series.points.empty(); });
  if (plot.series.empty()) return std::nullopt;

  const auto extent = extent_of(plot);
  const bool logarithmic = extent.most > 10 * extent.least;
  const auto axis =
      logarithmic ? decimal_log_axis(extent.least, extent.most) : linear_axis(0, 1.06 * extent.most, 6);
  const auto legend = laid_out(entries_of(plot), kScatterLeft + kPanel + kScatterRight);
  const int foot = legend.height + kScatterFoot;
  const int bottom = foot + kErrorPanel + kGap;
  const int height = bottom + kPanel + kTitleHeight;
  const auto panel = [&](int from, int to) {
    return panel_commands({kScatterLeft, kScatterLeft + kPanel, from, to}, legend.width, height);
  };
  auto body = "set multiplot\n" + frame_commands() + title_commands(plot.title, legend.width, height);
  body += panel(bottom, bottom + kPanel) + (logarithmic ? "set logscale xy\n" : "");
  body += axis_commands('x', unlabelled(axis)) + axis_commands('y', axis);
  body += fmt::format("set ylabel {}\n", gnuplot_text("predicted " + plot.quantity, 60));
  body += fmt::format(
      "plot $a using 1:2:3 with filledcurves {} fs solid 1 noborder notitle, \\\n  $a using 1:1 with lines "
      "{} notitle",
      kBandStyle, kEqualStyle);
  body += points(plot, 2) + "unset label 1\nunset logscale y\n" + panel(foot, foot + kErrorPanel) +
          axis_commands('x', axis);
  body += fmt::format("set xlabel {}\n", gnuplot_text("measured " + plot.quantity, 60));
  body += error_panel(plot, extent) + legend_commands(legend, height) + "unset multiplot\n";
  return PlotScript{legend.width, height, data_of(plot, axis) + legend_data(legend), body};
}

}  // namespace stepcast
