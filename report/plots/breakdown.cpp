#include "report/plots/breakdown.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/plots/style.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

constexpr int kBarsLeft = 85;            // [px]
constexpr int kBarsRight = 25;           // [px]
constexpr double kLabelCharacter = 8.2;  // [px] upper estimate of the mean width of DejaVu Sans at 11 points
constexpr double kSlantedPitch = 18;     // [px] smallest distance of slanted labels
constexpr double kHalfBarWidth = 0.375;  // half width of a bar, in pitches

std::size_t longest_of(const std::vector<std::string>& labels) {
  std::size_t longest = 0;
  for (const auto& label : labels) longest = std::max(longest, std::min(display_width(label), kLongestLabel));
  return longest;
}

}  // namespace

BarLayout bar_layout(const std::vector<std::string>& labels) {
  const double bars = labels.size();
  const double label_width = kLabelCharacter * longest_of(labels);
  const double panel = std::clamp(bars * std::max(label_width + 14, 46.0), 320.0, 850.0);
  BarLayout layout;
  layout.left = kBarsLeft;
  layout.margin = std::max(0.6, (4 - bars) / 2);
  layout.pitch = panel / (bars - 1 + 2 * layout.margin);
  layout.slanted = label_width + 8 > layout.pitch;
  if (layout.slanted) {
    layout.labels = 16 + static_cast<int>(0.64 * label_width);
    layout.left =
        std::max(kBarsLeft, static_cast<int>(0.77 * label_width - layout.margin * layout.pitch) + 12);
    layout.stride = std::ceil(kSlantedPitch / layout.pitch);
  }
  layout.right = layout.left + static_cast<int>(panel);
  layout.width = layout.right + kBarsRight;
  return layout;
}

std::string bar_axis(const BarLayout& layout, std::size_t bars) {
  return fmt::format("set xrange [{}:{}]\nunset xtics\n", -layout.margin,
                     static_cast<double>(bars) - 1 + layout.margin);
}

std::string bar_labels(const std::vector<std::string>& labels, const BarLayout& layout) {
  std::string out;
  for (std::size_t i = 0; i < labels.size(); i += layout.stride) {
    out += fmt::format("set label {} {} at first {}, graph 0 {} offset 0,{}\n", i + 2,
                       gnuplot_text(shortened_middle(labels[i], kLongestLabel), kLongestLabel), i,
                       layout.slanted ? "right rotate by 40" : "center", layout.slanted ? "-0.5" : "-0.9");
  }
  return out;
}

std::string bar_axis_name(const std::string& name, const BarLayout& layout, double height, int picture) {
  return fmt::format("set label 1000 {} at screen {}, screen {} center\n", gnuplot_text(name, 60),
                     0.5 * (layout.left + layout.right) / layout.width, height / picture);
}

std::string stacked_data(const std::vector<std::vector<double>>& bars, std::size_t parts) {
  std::vector<double> tops(bars.size());
  std::string out;
  for (std::size_t part = 0; part < parts; ++part) {
    out += fmt::format("$b{} << EOD\n", part);
    for (std::size_t i = 0; i < bars.size(); ++i) {
      const double bottom = tops[i];
      tops[i] += part < bars[i].size() ? bars[i][part] : 0;
      const double x = i;
      out += fmt::format("{} {} {} {} {} {}\n", x, shortest(tops[i]), x - kHalfBarWidth, x + kHalfBarWidth,
                         shortest(bottom), shortest(tops[i]));
    }
    out += "EOD\n";
  }
  out += "$t << EOD\n";
  for (std::size_t i = 0; i < tops.size(); ++i) out += fmt::format("{} {}\n", i, shortest(tops[i]));
  return out + "EOD\n";
}

std::string stacked_boxes(const std::vector<std::string>& parts) {
  std::string out;
  for (std::size_t part = 0; part < parts.size(); ++part) {
    out +=
        fmt::format(", \\\n  $b{} using 1:2:3:4:5:6 with boxxyerror lc rgb '{}' fs solid 1 noborder notitle",
                    part, part_colour(parts[part], part));
  }
  return out;
}

std::vector<LegendEntry> part_entries(const std::vector<std::string>& parts) {
  std::vector<LegendEntry> entries;
  for (std::size_t part = 0; part < parts.size(); ++part)
    entries.push_back({fmt::format("lc rgb '{}' lw 9", part_colour(parts[part], part)), "", parts[part]});
  return entries;
}

namespace {

constexpr int kBarsHeight = 330;  // [px]

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
  return most >= 7200   ? Unit{"h", 3600}
         : most >= 2    ? Unit{"s", 1}
         : most >= 2e-3 ? Unit{"ms", 1e-3}
                        : Unit{"us", 1e-6};
}

/// The unit in which the largest sum has three digits.
int label_decimals(double most) {
  return most >= 100 ? 0 : most >= 10 ? 1 : 2;
}

std::vector<std::string> labels_of(const BreakdownPlot& plot) {
  std::vector<std::string> labels;
  for (const auto& bar : plot.bars) labels.push_back(bar.label);
  return told_apart(std::move(labels), kLongestLabel);
}

/// The parts of each bar in a unit.
std::vector<std::vector<double>> stacks_of(const BreakdownPlot& plot, double unit) {
  std::vector<std::vector<double>> stacks;
  for (const auto& bar : plot.bars) {
    stacks.push_back(bar.seconds);
    for (double& seconds : stacks.back()) seconds /= unit;
  }
  return stacks;
}

}  // namespace

std::optional<PlotScript> breakdown_script(const BreakdownPlot& plot) {
  if (plot.bars.empty() || plot.parts.empty()) return std::nullopt;
  double most = 0;
  for (const auto& bar : plot.bars) most = std::max(most, total(bar, plot.parts.size()));
  const Unit unit = unit_for(most);
  const auto labels = labels_of(plot);
  const BarLayout layout = bar_layout(labels);
  const auto legend = laid_out(part_entries(plot.parts), layout.width);
  const int bottom = legend.height + kAxisNameHeight + layout.labels;
  const int height = bottom + kBarsHeight + kTitleHeight;

  std::string body = "set multiplot\n" + frame_commands() + title_commands(plot.title, layout.width, height);
  body += panel_commands({layout.left, layout.right, bottom, bottom + kBarsHeight}, layout.width, height);
  body += bar_axis(layout, plot.bars.size());
  body += axis_commands('y', linear_axis(0, most > 0 ? 1.08 * most / unit.seconds : 1, 6));
  body += fmt::format("set ylabel {}\n", gnuplot_text(fmt::format("{} [{}]", plot.quantity, unit.name), 60));
  body += bar_axis_name(plot.label_name, layout, legend.height + 0.5 * kAxisNameHeight, height);
  body += bar_labels(labels, layout) + "plot NaN notitle" + stacked_boxes(plot.parts);
  if (layout.pitch >= 40) {
    body += fmt::format(
        ", \\\n  $t using 1:2:(sprintf('%.{}f', $2)) with labels offset 0,0.6 font ',9.5' notitle",
        label_decimals(most / unit.seconds));
  }
  body += "\n" + legend_commands(legend, height) + "unset multiplot\n";
  return PlotScript{layout.width, height,
                    stacked_data(stacks_of(plot, unit.seconds), plot.parts.size()) + legend_data(legend),
                    body};
}

}  // namespace stepcast
