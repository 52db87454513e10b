#include "report/plot_breakdown.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/bar_layout.hpp"
#include "report/plot_axes.hpp"
#include "report/plot_legend.hpp"
#include "report/plot_style.hpp"

namespace stepcast {
namespace {

constexpr int kPanelHeight = 330;  // [px]
constexpr int kTitle = 50;         // [px]
constexpr int kAxisName = 34;      // [px]

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

/// Three digits of the largest sum.
int decimals_for(double most) {
  return most >= 100 ? 0 : most >= 10 ? 1 : 2;
}

std::vector<std::string> labels_of(const BreakdownPlot& plot) {
  std::vector<std::string> labels;
  for (const auto& bar : plot.bars) labels.push_back(bar.label);
  return labels;
}

/// Parts of each bar, in the unit.
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
  const int bottom = legend.height + kAxisName + layout.labels;
  const int height = bottom + kPanelHeight + kTitle;

  std::string body = "set multiplot\n" + frame_commands() + title_commands(plot.title, layout.width, height);
  body += panel_commands({layout.left, layout.right, bottom, bottom + kPanelHeight}, layout.width, height);
  body += bar_axis(layout, plot.bars.size());
  body += axis_commands('y', linear_axis(0, most > 0 ? 1.08 * most / unit.seconds : 1, 6));
  body += fmt::format("set ylabel {}\n", gnuplot_text(fmt::format("{} [{}]", plot.quantity, unit.name), 60));
  body += bar_axis_name(plot.label_name, layout, legend.height + 0.5 * kAxisName, height);
  body += bar_labels(labels, layout) + "plot NaN notitle" + stacked_boxes(plot.parts.size());
  if (layout.pitch >= 40) {
    body += fmt::format(
        ", \\\n  $t using 1:2:(sprintf('%.{}f', $2)) with labels offset 0,0.6 font ',9.5' notitle",
        decimals_for(most / unit.seconds));
  }
  body += "\n" + legend_commands(legend, height) + "unset multiplot\n";
  return PlotScript{layout.width, height,
                    stacked_data(stacks_of(plot, unit.seconds), plot.parts.size()) + legend_data(legend),
                    body};
}

}  // namespace stepcast
