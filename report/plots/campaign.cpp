#include <fmt/format.h>

#include <algorithm>

#include "report/plots/breakdown.hpp"
#include "report/plots/results_plots.hpp"
#include "report/plots/style.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

constexpr int kSharesHeight = 260;  // [px]
constexpr int kHoursHeight = 160;   // [px]
constexpr int kBetween = 30;        // [px]
constexpr double kLegible = 0.08;   // smallest share whose bar is high enough for its number

std::vector<std::string> labels_of(const CampaignPlot& plot) {
  std::vector<std::string> labels;
  for (const auto& bar : plot.bars) labels.push_back(bar.label);
  return told_apart(std::move(labels), kLongestLabel);
}

/// The parts of each bar in per cent.
std::vector<std::vector<double>> stacks_of(const CampaignPlot& plot) {
  std::vector<std::vector<double>> stacks;
  for (const auto& bar : plot.bars) {
    stacks.push_back(bar.shares);
    for (double& share : stacks.back()) share *= 100;
  }
  return stacks;
}

/// Gnuplot data blocks. `$h`: centre, makespan and its interval; `$u`: centre, height and text of each
/// utilization for which the bar is high enough.
std::string marks_of(const CampaignPlot& plot) {
  std::string hours = "$h << EOD\n", busy = "$u << EOD\n";
  for (std::size_t i = 0; i < plot.bars.size(); ++i) {
    const auto& [value, low, high] = plot.bars[i].hours;
    hours += fmt::format("{} {} {} {}\n", i, shortest(value), shortest(low.value_or(value)),
                         shortest(high.value_or(value)));
    const double share = plot.bars[i].shares.empty() ? 0 : plot.bars[i].shares.front();
    if (share >= kLegible) busy += fmt::format("{} {} {:.0f}\n", i, shortest(50 * share), 100 * share);
  }
  return hours + "EOD\n" + busy + "-1e9 0 0\nEOD\n";  // gnuplot refuses an empty block
}

Axis hours_axis(const CampaignPlot& plot) {
  double least = plot.bars.front().hours.value, most = least;
  for (const auto& bar : plot.bars) {
    least = std::min({least, bar.hours.value, bar.hours.low.value_or(bar.hours.value)});
    most = std::max({most, bar.hours.value, bar.hours.high.value_or(bar.hours.value)});
  }
  return decimal_log_axis(least, 1.3 * most);  // space for the numbers
}

}  // namespace

std::optional<PlotScript> campaign_script(const CampaignPlot& plot) {
  const auto positive = [](const CampaignBar& bar) {
    return bar.hours.value > 0 && bar.hours.low.value_or(1) > 0;
  };
  if (plot.bars.empty() || plot.parts.empty() || !std::ranges::all_of(plot.bars, positive))
    return std::nullopt;
  const auto labels = labels_of(plot);
  const BarLayout layout = bar_layout(labels);
  const auto legend = laid_out(part_entries(plot.parts), layout.width);
  const int bottom = legend.height + kAxisNameHeight + layout.labels;
  const int middle = bottom + kSharesHeight + kBetween, top = middle + kHoursHeight;
  const int height = top + kTitleHeight;
  const bool roomy = layout.pitch >= 40;

  std::string body = "set multiplot\n" + frame_commands() + title_commands(plot.title, layout.width, height);
  body += bar_axis(layout, plot.bars.size());
  body += panel_commands({layout.left, layout.right, middle, top}, layout.width, height);
  body += "set logscale y\n" + axis_commands('y', hours_axis(plot)) + "set ylabel 'makespan [h]'\n";
  body += "plot $h using 1:2:3:4 with yerrorbars pt 7 ps 0.7 lw 1.4 lc rgb '#404040' notitle";
  if (roomy)
    body += ", \\\n  $h using 1:4:(sprintf('%.3g', $2)) with labels offset 0,0.7 font ',9.5' notitle";
  body += "\nunset logscale y\nunset label 1\n";
  body += panel_commands({layout.left, layout.right, bottom, bottom + kSharesHeight}, layout.width, height);
  body += axis_commands('y', linear_axis(0, 100, 5)) + "set ylabel 'time of the devices [%]'\n";
  body += bar_axis_name(plot.label_name, layout, legend.height + 0.5 * kAxisNameHeight, height);
  body += bar_labels(labels, layout) + "plot NaN notitle" + stacked_boxes(plot.parts);
  if (roomy)
    body +=
        ", \\\n  $u using 1:2:(sprintf('%.0f', $3)) with labels textcolor rgb '#FFFFFF' font ',9.5' notitle";
  body += "\n" + legend_commands(legend, height) + "unset multiplot\n";
  return PlotScript{layout.width, height,
                    stacked_data(stacks_of(plot), plot.parts.size()) + marks_of(plot) + legend_data(legend),
                    body};
}

}  // namespace stepcast
