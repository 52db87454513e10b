#include "report/plot_legend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "report/display_text.hpp"
#include "report/gnuplot.hpp"
#include "report/plot_style.hpp"

namespace stepcast {
namespace {

constexpr int kRow = 20;          // [px]
constexpr int kFoot = 12;         // [px] below the last row
constexpr int kSample = 34;       // [px]
constexpr int kSampleGap = 9;     // [px] between a sample and its name
constexpr int kColumnGap = 30;    // [px]
constexpr double kLetter = 7.2;   // [px] generous mean width of a letter of DejaVu Sans at 10.5 points
constexpr int kLongestName = 64;  // [letters] longer names are cut

int entry_width(const LegendEntry& entry) {
  const auto letters = std::min<std::size_t>(display_width(entry.name), kLongestName);
  return kSample + kSampleGap + static_cast<int>(kLetter * static_cast<double>(letters));
}

/// Left edges of `columns` columns, counted from 0, and the right edge of the last one.
std::vector<int> edges(const std::vector<LegendEntry>& entries, std::size_t columns) {
  std::vector<int> out{0};
  for (std::size_t column = 0; column < columns; ++column) {
    int widest = 0;
    for (std::size_t i = column; i < entries.size(); i += columns)
      widest = std::max(widest, entry_width(entries[i]));
    out.push_back(out.back() + widest + kColumnGap);
  }
  return out;
}

/// Middle of the sample of entry `i`, from the lower left corner of the picture [px].
std::pair<int, int> place(const Legend& legend, std::size_t i) {
  const auto columns = legend.column_left.size();
  const auto row = static_cast<int>(i / columns);
  return {legend.column_left[i % columns] + kSample / 2, legend.height - kRow * row - kRow / 2};
}

}  // namespace

Legend laid_out(const std::vector<LegendEntry>& entries, int width) {
  std::size_t columns = std::max<std::size_t>(entries.size(), 1);
  while (columns > 1 && edges(entries, columns).back() > width) --columns;
  // Rows of even length look better than a full row and a rest.
  const std::size_t rows = (entries.size() + columns - 1) / columns;
  columns = rows > 0 ? (entries.size() + rows - 1) / rows : 1;
  auto left = edges(entries, columns);
  const int margin = std::max(0, (width - left.back() + kColumnGap) / 2);
  left.pop_back();
  for (int& x : left) x += margin;
  return {entries, width, static_cast<int>(rows) * kRow + kFoot, left};
}

std::string legend_data(const Legend& legend) {
  std::string out;
  for (std::size_t i = 0; i < legend.entries.size(); ++i) {
    const auto [x, y] = place(legend, i);
    out += fmt::format("$k{} << EOD\n{} {} {} 0\nEOD\n", i, x - kSample / 2, y, kSample);
    out += fmt::format("$m{} << EOD\n{} {}\nEOD\n", i, x, y);
  }
  return out;
}

std::string legend_commands(const Legend& legend, int picture_height) {
  auto out = panel_commands({0, legend.width, 0, legend.height}, legend.width, picture_height);
  out += fmt::format(
      "unset border\nunset tics\nunset grid\nunset xlabel\nunset ylabel\nunset label\nunset logscale\n"
      "set xrange [0:{}]\nset yrange [0:{}]\n",
      legend.width, legend.height);
  std::string plot;
  for (std::size_t i = 0; i < legend.entries.size(); ++i) {
    const auto [x, y] = place(legend, i);
    const LegendEntry& entry = legend.entries[i];
    out += fmt::format("set label {} {} at first {}, first {} left font ',10.5'\n", i + 1,
                       gnuplot_text(entry.name, kLongestName), x + kSample / 2 + kSampleGap, y);
    if (!entry.line.empty())
      plot += fmt::format(", \\\n  $k{} with vectors nohead {} notitle", i, entry.line);
    if (!entry.point.empty()) plot += fmt::format(", \\\n  $m{} with points {} notitle", i, entry.point);
  }
  return out + "plot NaN notitle" + plot + "\n";
}

}  // namespace stepcast
