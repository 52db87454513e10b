#include <fmt/format.h>

#include <algorithm>

#include "report/plots/results_plots.hpp"
#include "report/plots/style.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostBars = 20;
constexpr std::size_t kLongest = 44;  // [characters] longer names are cut
constexpr double kCharacter = 8.6;    // [px] width of a character
constexpr int kRow = 30;              // [px]
constexpr int kPanelWidth = 430;      // [px]
constexpr int kTitle = 44;            // [px]
constexpr int kFoot = 64;             // [px] tick labels and axis label
constexpr double kHalfBar = 0.32;     // half height of a bar, in rows

int names_width(const std::vector<Sensitivity>& shares) {
  std::size_t longest = 0;
  for (const auto& share : shares) longest = std::max(longest, std::min(display_width(share.name), kLongest));
  return 20 + static_cast<int>(kCharacter * static_cast<double>(longest));
}

}  // namespace

std::optional<PlotScript> sensitivity_script(const SensitivityPlot& plot) {
  auto shares = plot.shares;
  if (shares.empty()) return std::nullopt;
  shares.resize(std::min(shares.size(), kMostBars));
  const auto rows = static_cast<int>(shares.size());
  const int left = names_width(shares);
  const int width = left + kPanelWidth + 60;
  const int height = kFoot + kRow * rows + kTitle;

  std::string data = "$s << EOD\n";
  std::string body = frame_commands() + title_commands(plot.title, width, height);
  body += panel_commands({left, left + kPanelWidth, kFoot, kFoot + kRow * rows}, width, height);
  for (int row = 0; row < rows; ++row) {
    const auto& share = shares[static_cast<std::size_t>(row)];
    const double per_cent = 100 * std::clamp(share.share, 0.0, 1.0);
    data +=
        fmt::format("{0} {1} 0 {0} {2} {3}\n", fixed(per_cent, 3), -row, -row - kHalfBar, -row + kHalfBar);
    body += fmt::format("set label {} {} at graph 0, first {} right offset -0.8,0\n", row + 2,
                        gnuplot_text(shortened_middle(share.name, kLongest), kLongest), -row);
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
