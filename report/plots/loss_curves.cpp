#include "report/plots/loss_curves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/plots/style.hpp"
#include "report/results/results.hpp"

namespace stepcast {
namespace {

constexpr int kCurvesWidth = 900;   // [px]
constexpr int kCurvesHeight = 380;  // [px]
constexpr int kCurvesLeft = 80;     // [px]
constexpr int kCurvesRight = 25;    // [px]
constexpr int kCurvesFoot = 60;     // [px] tick labels and axis label

using Points = std::vector<std::pair<double, double>>;

struct CurveExtent {
  double seconds = 0, least = HUGE_VAL, most = 0;
};

void widen(CurveExtent& extent, const Points& points) {
  for (const auto& [seconds, value] : points) {
    extent.seconds = std::max(extent.seconds, seconds);
    extent.least = std::min(extent.least, value);
    extent.most = std::max(extent.most, value);
  }
}

std::string block(char name, std::size_t number, const Points& points) {
  std::string out = fmt::format("${}{} << EOD\n", name, number);
  for (const auto& [seconds, value] : points)
    out += fmt::format("{} {}\n", shortest(seconds), shortest(value));
  return out + "EOD\n";
}

std::string band_block(std::size_t number, const std::vector<CurveRange>& band) {
  std::string out = fmt::format("$b{} << EOD\n", number);
  for (const CurveRange& range : band)
    out += fmt::format("{} {} {}\n", shortest(range.seconds), shortest(range.low), shortest(range.high));
  return out + "EOD\n";
}

std::string dashed(std::size_t i) {
  return fmt::format("lc rgb '{}' lw 1.6 dt (6,5)", series_colour(i));
}

}  // namespace

std::optional<PlotScript> curve_script(const CurvePlot& given) {
  CurvePlot plot = given;
  std::erase_if(plot.curves, [](const Curve& curve) { return curve.measured.size() < 2; });
  if (plot.curves.empty()) return std::nullopt;
  CurveExtent extent;
  std::vector<LegendEntry> entries;
  std::string data, lines, bands;
  for (std::size_t i = 0; i < plot.curves.size(); ++i) {
    const Curve& curve = plot.curves[i];
    widen(extent, curve.measured);
    widen(extent, curve.forecast);
    for (const CurveRange& range : curve.band)
      widen(extent, {{range.seconds, range.low}, {range.seconds, range.high}});
    entries.push_back({series_line(i), series_points(i), curve.name});
    data += block('c', i, curve.measured) + block('d', i, curve.forecast);
    lines += fmt::format(
        ", \\\n  $c{0} using 1:2 with lines {1} notitle, \\\n  $c{0} using 1:2 with points {2} notitle", i,
        series_line(i), series_points(i));
    if (curve.band.size() > 1) {
      data += band_block(i, curve.band);
      bands += fmt::format(
          ", \\\n  $b{} using 1:2:3 with filledcurves fs transparent solid 0.15 lc rgb '{}' notitle", i,
          series_colour(i));
    }
    if (curve.forecast.size() > 1)
      lines += fmt::format(", \\\n  $d{} using 1:2 with lines {} notitle", i, dashed(i));
  }
  const bool forecasts =
      std::ranges::any_of(plot.curves, [](const Curve& one) { return one.forecast.size() > 1; });
  if (forecasts) entries.push_back({"lc rgb '#606060' lw 1.6 dt (6,5)", "", "at forecast times"});

  const Legend legend = laid_out(entries, kCurvesWidth);
  const int bottom = legend.height + kCurvesFoot, height = bottom + kCurvesHeight + kTitleHeight;
  const bool logarithmic = extent.least > 0 && extent.most > 10 * extent.least;
  std::string body = "set multiplot\n" + frame_commands() + title_commands(plot.title, kCurvesWidth, height);
  body += panel_commands({kCurvesLeft, kCurvesWidth - kCurvesRight, bottom, bottom + kCurvesHeight},
                         kCurvesWidth, height);
  body += axis_commands('x', linear_axis(0, 1.02 * extent.seconds, 8));
  if (logarithmic) body += "set logscale y\n";
  body += axis_commands(
      'y', logarithmic ? decimal_log_axis(extent.least, extent.most) : linear_axis(0, 1.05 * extent.most, 6));
  body += fmt::format("set xlabel {}\nset ylabel {}\nplot NaN notitle", gnuplot_text(plot.time, 60),
                      gnuplot_text(plot.quantity, 60));
  body += bands + lines + "\n" + legend_commands(legend, height) + "unset multiplot\n";
  return PlotScript{legend.width, height, data + legend_data(legend), body};
}

}  // namespace stepcast
