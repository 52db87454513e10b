#include "report/plot_breakdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/display_text.hpp"
#include "report/plot_axes.hpp"
#include "report/plot_legend.hpp"
#include "report/plot_style.hpp"
#include "report/results.hpp"

namespace stepcast {
namespace {

constexpr int kPanelHeight = 330;     // [px]
constexpr int kTitle = 50;            // [px]
constexpr int kLeft = 85;             // [px]
constexpr int kRight = 25;            // [px]
constexpr int kAxisName = 34;         // [px]
constexpr double kLetter = 8.2;       // [px] generous mean width of a letter of DejaVu Sans at 11 points
constexpr std::size_t kLongest = 28;  // [letters] longer labels are cut
constexpr double kSlantedPitch = 18;  // [px] between slanted labels at least
constexpr double kHalfBar = 0.375;    // of the distance between two bars

double total(const BreakdownBar& bar, std::size_t parts) {
  double sum = 0;
  for (std::size_t i = 0; i < std::min(parts, bar.seconds.size()); ++i) sum += bar.seconds[i];
  return sum;
}

struct Unit {
  const char* name;
  double seconds;
};

Unit unit_for(double most) {
  return most >= 2 ? Unit{"s", 1} : most >= 2e-3 ? Unit{"ms", 1e-3} : Unit{"us", 1e-6};
}

std::size_t longest_label(const BreakdownPlot& plot) {
  std::size_t longest = 0;
  for (const auto& bar : plot.bars) longest = std::max(longest, std::min(display_width(bar.label), kLongest));
  return longest;
}

/// How the bars stand in the picture.
struct Layout {
  int width = 0;      ///< [px] of the picture
  int left = kLeft;   ///< [px]
  double pitch = 0;   ///< [px] from bar to bar
  double room = 0.6;  ///< beside the outermost bars, in pitches
  int labels = 24;    ///< [px] height of the labels
  bool slanted = false;
  std::size_t stride = 1;  ///< every so many bars have a label
};

Layout layout_of(const BreakdownPlot& plot) {
  const auto bars = static_cast<double>(plot.bars.size());
  const double letters = kLetter * static_cast<double>(longest_label(plot));
  const double panel = std::clamp(bars * std::max(letters + 14, 46.0), 320.0, 850.0);
  Layout layout;
  layout.room = std::max(0.6, (4 - bars) / 2);
  layout.pitch = panel / (bars - 1 + 2 * layout.room);
  layout.slanted = letters + 8 > layout.pitch;
  if (layout.slanted) {
    layout.labels = 16 + static_cast<int>(0.64 * letters);
    layout.left = std::max(kLeft, static_cast<int>(0.77 * letters - layout.room * layout.pitch) + 12);
    layout.stride = static_cast<std::size_t>(std::ceil(kSlantedPitch / layout.pitch));
  }
  layout.width = layout.left + kRight + static_cast<int>(panel);
  return layout;
}

/// Three digits of the largest sum.
int decimals_for(double most) {
  return most >= 100 ? 0 : most >= 10 ? 1 : 2;
}

/// Blocks `$bN`: centre, its two sides, bottom and top of part N of each bar; `$t`: centre and sum.
std::string data_of(const BreakdownPlot& plot, double unit) {
  std::vector<double> tops(plot.bars.size());
  std::string out;
  for (std::size_t part = 0; part < plot.parts.size(); ++part) {
    out += fmt::format("$b{} << EOD\n", part);
    for (std::size_t i = 0; i < plot.bars.size(); ++i) {
      const auto& seconds = plot.bars[i].seconds;
      const double bottom = tops[i];
      tops[i] += (part < seconds.size() ? seconds[part] : 0) / unit;
      const auto x = static_cast<double>(i);
      out += fmt::format("{} {} {} {} {} {}\n", x, shortest(tops[i]), x - kHalfBar, x + kHalfBar,
                         shortest(bottom), shortest(tops[i]));
    }
    out += "EOD\n";
  }
  out += "$t << EOD\n";
  for (std::size_t i = 0; i < tops.size(); ++i) out += fmt::format("{} {}\n", i, shortest(tops[i]));
  return out + "EOD\n";
}

/// Labels as text of their own: tick labels would be taken as formats.
std::string label_commands(const BreakdownPlot& plot, const Layout& layout) {
  std::string out;
  for (std::size_t i = 0; i < plot.bars.size(); i += layout.stride) {
    out += fmt::format("set label {} {} at first {}, graph 0 {} offset 0,{}\n", i + 2,
                       gnuplot_text(shortened_middle(plot.bars[i].label, kLongest), kLongest), i,
                       layout.slanted ? "right rotate by 40" : "center", layout.slanted ? "-0.5" : "-0.9");
  }
  return out;
}

std::vector<LegendEntry> entries_of(const BreakdownPlot& plot) {
  std::vector<LegendEntry> entries;
  for (std::size_t part = 0; part < plot.parts.size(); ++part) {
    entries.push_back({fmt::format("lc rgb '{}' lw 9", series_colour(part)), "", plot.parts[part]});
  }
  return entries;
}

}  // namespace

std::optional<PlotScript> breakdown_script(const BreakdownPlot& plot) {
  if (plot.bars.empty() || plot.parts.empty()) return std::nullopt;
  double most = 0;
  for (const auto& bar : plot.bars) most = std::max(most, total(bar, plot.parts.size()));
  const Unit unit = unit_for(most);
  const Layout layout = layout_of(plot);
  const auto legend = laid_out(entries_of(plot), layout.width);
  const int bottom = legend.height + kAxisName + layout.labels;
  const int height = bottom + kPanelHeight + kTitle;

  std::string body = "set multiplot\n" + frame_commands() + title_commands(plot.title, layout.width, height);
  body += panel_commands({layout.left, layout.width - kRight, bottom, bottom + kPanelHeight}, layout.width,
                         height);
  body += fmt::format("set xrange [{}:{}]\nunset xtics\n", -layout.room,
                      static_cast<double>(plot.bars.size()) - 1 + layout.room);
  body += axis_commands('y', linear_axis(0, most > 0 ? 1.08 * most / unit.seconds : 1, 6));
  body += fmt::format("set ylabel 'mean step [{}]'\nset label 1000 {} at screen {}, screen {} center\n",
                      unit.name, gnuplot_text(plot.label_name, 60),
                      0.5 * (layout.left + layout.width - kRight) / layout.width,
                      (legend.height + 0.5 * kAxisName) / height);
  body += label_commands(plot, layout) + "plot NaN notitle";
  for (std::size_t part = 0; part < plot.parts.size(); ++part) {
    body +=
        fmt::format(", \\\n  $b{} using 1:2:3:4:5:6 with boxxyerror lc rgb '{}' fs solid 1 noborder notitle",
                    part, series_colour(part));
  }
  if (layout.pitch >= 40) {
    body += fmt::format(
        ", \\\n  $t using 1:2:(sprintf('%.{}f', $2)) with labels offset 0,0.6 font ',9.5' notitle",
        decimals_for(most / unit.seconds));
  }
  body += "\n" + legend_commands(legend, height) + "unset multiplot\n";
  return PlotScript{layout.width, height, data_of(plot, unit.seconds) + legend_data(legend), body};
}

}  // namespace stepcast
