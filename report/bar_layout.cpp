#include "report/bar_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/display_text.hpp"
#include "report/gnuplot.hpp"
#include "report/plot_style.hpp"
#include "report/results.hpp"

namespace stepcast {
namespace {

constexpr int kLeft = 85;             // [px]
constexpr int kRight = 25;            // [px]
constexpr double kLetter = 8.2;       // [px] generous mean width of a letter of DejaVu Sans at 11 points
constexpr std::size_t kLongest = 36;  // [letters] longer labels are cut
constexpr double kSlantedPitch = 18;  // [px] between slanted labels at least
constexpr double kHalfBar = 0.375;    // of the distance between two bars

std::size_t longest_of(const std::vector<std::string>& labels) {
  std::size_t longest = 0;
  for (const auto& label : labels) longest = std::max(longest, std::min(display_width(label), kLongest));
  return longest;
}

}  // namespace

BarLayout bar_layout(const std::vector<std::string>& labels) {
  const auto bars = static_cast<double>(labels.size());
  const double letters = kLetter * static_cast<double>(longest_of(labels));
  const double panel = std::clamp(bars * std::max(letters + 14, 46.0), 320.0, 850.0);
  BarLayout layout;
  layout.left = kLeft;
  layout.room = std::max(0.6, (4 - bars) / 2);
  layout.pitch = panel / (bars - 1 + 2 * layout.room);
  layout.slanted = letters + 8 > layout.pitch;
  if (layout.slanted) {
    layout.labels = 16 + static_cast<int>(0.64 * letters);
    layout.left = std::max(kLeft, static_cast<int>(0.77 * letters - layout.room * layout.pitch) + 12);
    layout.stride = static_cast<std::size_t>(std::ceil(kSlantedPitch / layout.pitch));
  }
  layout.right = layout.left + static_cast<int>(panel);
  layout.width = layout.right + kRight;
  return layout;
}

std::string bar_axis(const BarLayout& layout, std::size_t bars) {
  return fmt::format("set xrange [{}:{}]\nunset xtics\n", -layout.room,
                     static_cast<double>(bars) - 1 + layout.room);
}

std::string bar_labels(const std::vector<std::string>& labels, const BarLayout& layout) {
  std::string out;
  for (std::size_t i = 0; i < labels.size(); i += layout.stride) {
    out += fmt::format("set label {} {} at first {}, graph 0 {} offset 0,{}\n", i + 2,
                       gnuplot_text(shortened_middle(labels[i], kLongest), kLongest), i,
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

std::string stacked_boxes(std::size_t parts) {
  std::string out;
  for (std::size_t part = 0; part < parts; ++part) {
    out +=
        fmt::format(", \\\n  $b{} using 1:2:3:4:5:6 with boxxyerror lc rgb '{}' fs solid 1 noborder notitle",
                    part, series_colour(part));
  }
  return out;
}

std::vector<LegendEntry> part_entries(const std::vector<std::string>& parts) {
  std::vector<LegendEntry> entries;
  for (std::size_t part = 0; part < parts.size(); ++part)
    entries.push_back({fmt::format("lc rgb '{}' lw 9", series_colour(part)), "", parts[part]});
  return entries;
}

}  // namespace stepcast
