#include "report/plots/search_plot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/results/results.hpp"

namespace stepcast {
namespace {

constexpr int kWidth = 960, kHeight = 330, kPanelWidth = 385, kFoot = 60;  // [px]
constexpr const char* kBestStyle = "lc rgb '#D55E00' lw 1.8";
constexpr const char* kPointStyle = "lc rgb '#0072B2' pt 7 ps 0.6";

/// Gnuplot data blocks. `$v`: number and value of each evaluation; `$b`: the best so far, as steps; `$m`:
/// memory in GB and value; `$f`: the front.
std::string search_data(const SearchPlot& plot) {
  std::string values = "$v << EOD\n", best = "$b << EOD\n", memory = "$m << EOD\n", front = "$f << EOD\n";
  std::optional<double> so_far;
  for (std::size_t i = 0; i < plot.points.size(); ++i) {
    const auto& point = plot.points[i];
    if (point) {
      values += fmt::format("{} {}\n", i + 1, shortest(point->value));
      const bool better = !so_far || (plot.smallest ? point->value < *so_far : point->value > *so_far);
      if (better) so_far = point->value;
      if (point->memory_bytes > 0)
        memory += fmt::format("{} {}\n", shortest(1e-9 * point->memory_bytes), shortest(point->value));
    }
    if (so_far) best += fmt::format("{} {}\n", i + 1, shortest(*so_far));
  }
  for (const std::size_t i : memory_front(plot))
    front += fmt::format("{} {}\n", shortest(1e-9 * plot.points[i]->memory_bytes),
                         shortest(plot.points[i]->value));
  return values + "EOD\n" + best + "EOD\n" + memory + "EOD\n" + front + "EOD\n";
}

struct SearchExtent {
  double least = HUGE_VAL, most = -HUGE_VAL;
  double least_memory = HUGE_VAL, memory = 0;  // [GB]
};

SearchExtent extent_of(const SearchPlot& plot) {
  SearchExtent extent;
  for (const auto& point : plot.points) {
    if (!point) continue;
    extent.least = std::min(extent.least, point->value);
    extent.most = std::max(extent.most, point->value);
    if (point->memory_bytes > 0)
      extent.least_memory = std::min(extent.least_memory, 1e-9 * point->memory_bytes);
    extent.memory = std::max(extent.memory, 1e-9 * point->memory_bytes);
  }
  return extent;
}

}  // namespace

std::vector<std::size_t> memory_front(const SearchPlot& plot) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < plot.points.size(); ++i) {
    if (plot.points[i] && plot.points[i]->memory_bytes > 0) order.push_back(i);
  }
  const auto merit = [&](std::size_t i) { return (plot.smallest ? -1 : 1) * plot.points[i]->value; };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
    const double memory = plot.points[a]->memory_bytes, other = plot.points[b]->memory_bytes;
    return memory != other ? memory < other : merit(a) > merit(b);
  });
  std::vector<std::size_t> front;
  for (const std::size_t i : order) {
    if (front.empty() || merit(i) > merit(front.back())) front.push_back(i);
  }
  return front;
}

std::optional<PlotScript> search_script(const SearchPlot& plot) {
  if (std::ranges::count_if(plot.points, [](const auto& one) { return one.has_value(); }) < 2)
    return std::nullopt;
  const SearchExtent extent = extent_of(plot);
  const bool two = extent.least_memory < extent.memory;
  const int width = two ? kWidth : kWidth / 2 + 40;
  std::vector<LegendEntry> entries{{"", kPointStyle, "evaluation"}, {kBestStyle, "", "best so far"}};
  if (two) entries[1].name += ", or with no more memory";
  const Legend legend = laid_out(entries, width);
  const int bottom = legend.height + kFoot, height = bottom + kHeight + kTitleHeight;
  const auto panel = [&](int left) {
    return panel_commands({left, left + kPanelWidth, bottom, bottom + kHeight}, width, height);
  };
  const double room = 0.05 * std::max(extent.most - extent.least, 1e-3 * std::abs(extent.most));
  std::string body = "set multiplot\n" + frame_commands() + title_commands(plot.title, width, height);
  body += axis_commands('y', linear_axis(extent.least - room, extent.most + room, 6));
  body += fmt::format("set ylabel {}\n", gnuplot_text(plot.quantity, 60));
  body += panel(85) + axis_commands('x', linear_axis(0, static_cast<double>(plot.points.size()) + 1, 6));
  body += fmt::format(
      "set xlabel 'evaluation'\nplot $v using 1:2 with points {} notitle, \\\n  $b using 1:2 with steps {} "
      "notitle\nunset label 1\n",
      kPointStyle, kBestStyle);
  if (two) {
    body += panel(560) + axis_commands('x', linear_axis(0, 1.05 * extent.memory, 6));
    body += fmt::format(
        "set xlabel 'memory of a device [GB]'\nplot $m using 1:2 with points {} notitle, \\\n  $f using 1:2 "
        "with "
        "steps {} notitle\n",
        kPointStyle, kBestStyle);
  }
  body += legend_commands(legend, height) + "unset multiplot\n";
  return PlotScript{width, height, search_data(plot) + legend_data(legend), body};
}

}  // namespace stepcast
