#include "report/plots/scaling.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/plots/style.hpp"
#include "report/results/results.hpp"

namespace stepcast {
namespace {

/// The smallest and the largest of the added values.
struct ScalingExtent {
  double least = HUGE_VAL;
  double most = -HUGE_VAL;

  void add(double x) {
    least = std::min(least, x);
    most = std::max(most, x);
  }
  void add(const PlottedValue& x) {
    add(x.value);
    add(x.low.value_or(x.value));
    add(x.high.value_or(x.value));
  }
};

/// The ranges that the axes must show, including intervals and published figures. Efficiency is a fraction.
struct ScalingExtents {
  ScalingExtent workers, throughput, efficiency;
};

bool has_interval(const PlottedValue& x) {
  return x.low && x.high;
}

/// The points that can be drawn, sorted by workers, each with its efficiency.
ScalingSeries cleaned(ScalingSeries series) {
  auto& points = series.points;
  std::erase_if(points, [](const auto& p) { return !(p.workers > 0 && p.throughput.value > 0); });
  std::erase_if(series.published, [](const auto& p) { return !(p.workers > 0 && p.throughput > 0); });
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return a.workers < b.workers; });
  if (points.empty()) return series;
  if (points.size() == 1 && points.front().workers > 1) return series;  // the series has no base
  const double base = points.front().throughput.value / points.front().workers;
  for (ScalingPoint& point : points) {
    if (point.efficiency) continue;
    const auto share = [&](std::optional<double> x) {
      return x ? std::optional(*x / point.workers / base) : x;
    };
    const PlottedValue& rate = point.throughput;
    point.efficiency = PlottedValue{rate.value / point.workers / base, share(rate.low), share(rate.high)};
  }
  return series;
}

std::string interval_row(double workers, const PlottedValue& x, double scale) {
  return fmt::format("{} {} {} {}\n", shortest(workers), shortest(scale * *x.low), shortest(scale * *x.high),
                     shortest(scale * x.value));
}

/// The series that have points to draw, sorted by workers, each point with its efficiency.
std::vector<ScalingSeries> drawable(const std::vector<ScalingSeries>& series) {
  std::vector<ScalingSeries> all;
  for (const auto& one : series) {
    all.push_back(cleaned(one));
    if (all.back().points.empty() && all.back().published.empty()) all.pop_back();
  }
  return all;
}

ScalingExtents extents_of(const std::vector<ScalingSeries>& all) {
  ScalingExtents extents;
  for (const auto& series : all) {
    for (const auto& point : series.points) {
      extents.workers.add(point.workers);
      extents.throughput.add(point.throughput);
      if (point.efficiency) extents.efficiency.add(*point.efficiency);
    }
    for (const auto& point : series.published) {
      extents.workers.add(point.workers);
      extents.throughput.add(point.throughput);
      if (point.efficiency) extents.efficiency.add(*point.efficiency);
    }
  }
  return extents;
}

/// Gnuplot data blocks of each series N: `$lN` (line), `$bN` (throughput band), `$eN` (efficiency band),
/// `$pN` (published throughput) and `$qN` (published efficiency); efficiencies are in per cent.
std::string scaling_data(const std::vector<ScalingSeries>& all) {
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string line, band, efficiency, published, share;
    for (const auto& p : all[i].points) {
      line += fmt::format("{} {} {}\n", shortest(p.workers), shortest(p.throughput.value),
                          p.efficiency ? shortest(100 * p.efficiency->value) : "NaN");
      if (has_interval(p.throughput)) {
        band += interval_row(p.workers, p.throughput, 1);
      }
      if (p.efficiency && has_interval(*p.efficiency)) {
        efficiency += interval_row(p.workers, *p.efficiency, 100);
      }
    }
    for (const auto& p : all[i].published) {
      published += fmt::format("{} {}\n", shortest(p.workers), shortest(p.throughput));
      if (p.efficiency) share += fmt::format("{} {}\n", shortest(p.workers), shortest(100 * *p.efficiency));
    }
    for (const auto& [block, rows] : {std::pair('l', line), std::pair('b', band), std::pair('e', efficiency),
                                      std::pair('p', published), std::pair('q', share)}) {
      out += fmt::format("${}{} << EOD\n{}EOD\n", block, i, rows);
    }
  }
  return out;
}

constexpr int kScalingWidth = 960;       // [px]
constexpr int kScalingHeight = 330;      // [px]
constexpr int kBelowPanel = 60;          // [px] tick labels and axis label
constexpr int kScalingPanelWidth = 385;  // [px]

/// Ideal lines that are closer together than this ratio are drawn as one.
constexpr double kSameRate = 0.1;

constexpr const char* kIdealStyle = "lc rgb '#808080' lw 1.3 dt (8,5)";
constexpr const char* kPublishedStyle = "pt 12 ps 1.15 lw 1.5";

bool scales(const ScalingSeries& series) {
  const auto& points = series.points;  // sorted by workers
  return !points.empty() && points.front().workers < points.back().workers;
}

/// The throughput per worker of ideal scaling, for each series with several numbers of workers.
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

/// The gnuplot commands for the bands, lines and published points of one panel.
/// @param column        column of `$lN` to draw
/// @param band, points  names of the data blocks
std::string curves(const std::vector<ScalingSeries>& all, int column, char band, char points) {
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto* colour = series_colour(i);
    const auto* published_colour = all.size() > 1 ? colour : "#000000";
    const char* how = all[i].points.size() == 1 ? "using 1:4:($1*0.94):($1*1.06):2:3 with boxxyerror"
                                                : "using 1:2:3 with filledcurves";
    const double opacity = std::min(0.18, 0.6 / all.size());  // many bands overlap
    const auto interval =
        fmt::format("{} lc rgb '{}' fs transparent solid {:.3g} noborder", how, colour, opacity);
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

  const auto legend = laid_out(entries_of(all), kScalingWidth);
  const int bottom = legend.height + kBelowPanel;
  const int height = bottom + kScalingHeight + kTitleHeight;
  const auto panel = [&](int left) {
    return panel_commands({left, left + kScalingPanelWidth, bottom, bottom + kScalingHeight}, kScalingWidth,
                          height);
  };
  const auto& throughput = extents.throughput;
  std::string body = "set multiplot\n" + frame_commands() + title_commands(plot.title, kScalingWidth, height);
  body += "set xlabel 'workers'\nset logscale x\n";
  body +=
      axis_commands('x', power_of_two_axis(extents.workers.least, extents.workers.most, kScalingPanelWidth));
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
  return PlotScript{kScalingWidth, height, scaling_data(all) + legend_data(legend), body};
}

}  // namespace stepcast
