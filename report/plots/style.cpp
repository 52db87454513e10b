#include "report/plots/style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

constexpr int kTitleCharacter = 10;  // [px] upper estimate of the mean width at 13 points
constexpr int kTitleBaseline = 22;   // [px] from the top

double screen(int pixels, int size) {
  return 1.0 * pixels / size;
}

}  // namespace

const char* series_colour(std::size_t i) {
  static constexpr std::array<const char*, 7> kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                       "#E69F00", "#56B4E9", "#000000"};
  return kColours[i % kColours.size()];
}

const char* part_colour(std::string_view part, std::size_t i) {
  struct Part {
    std::string_view name;
    const char* colour;
  };
  static constexpr std::array<Part, 20> kParts{{
      {"compute", "#0072B2"},
      {"exposed communication", "#D55E00"},
      {"waiting for the host", "#CC79A7"},
      {"waiting for the slowest", "#009E73"},
      {"data loading", "#E69F00"},
      {"not modelled (median)", "#A0A0A0"},
      {"undisturbed training", "#0072B2"},
      {"checkpoints", "#E69F00"},
      {"done again", "#D55E00"},
      {"repair and restart", "#CC79A7"},
      {"workers away", "#56B4E9"},
      {"slow workers", "#009E73"},
      {"failed links", "#000000"},
      {"jitter", "#A0A0A0"},
      {"training", "#0072B2"},
      {"waiting for the optimizer", "#CC79A7"},
      {"waiting for the slowest fold", "#009E73"},
      {"waiting for the generation", "#E69F00"},
      {"nothing left to try", "#56B4E9"},
      {"devices of master and optimizers", "#000000"},
  }};
  const auto known = std::ranges::find(kParts, part, &Part::name);
  return known == kParts.end() ? series_colour(i) : known->colour;
}

const char* series_dashes(std::size_t i) {
  static constexpr std::array<const char*, 4> kDashes{"", "8,4", "2,3", "10,3,2,3"};
  return kDashes[i / 7 % kDashes.size()];
}

namespace {

/// Gnuplot's number of filled point type `i`: circle, square, triangle, diamond, inverted triangle, pentagon.
int series_point(std::size_t i) {
  static constexpr std::array<int, 6> kPoints{7, 5, 9, 13, 11, 15};
  return kPoints[i % kPoints.size()];
}

}  // namespace

std::string series_line(std::size_t i) {
  const std::string dashes = series_dashes(i);
  return fmt::format("lc rgb '{}' lw 1.8 dt {}", series_colour(i), dashes.empty() ? "1" : "(" + dashes + ")");
}

std::string series_points(std::size_t i) {
  return fmt::format("lc rgb '{}' pt {} ps 0.6", series_colour(i), series_point(i));
}

std::string panel_commands(const PixelBox& box, int width, int height) {
  return fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset bmargin at screen {:.5f}\n"
      "set tmargin at screen {:.5f}\n",
      screen(box.left, width), screen(box.right, width), screen(box.bottom, height), screen(box.top, height));
}

std::string title_commands(const std::string& title, int width, int height) {
  constexpr double kLargest = 13,
                   kSmallest = 8;  // [points]; a long title is written smaller before it is cut
  const double fitting = 1.0 * width / kTitleCharacter;  // [characters] at the largest size
  const double size =
      std::clamp(kLargest * fitting / std::max<std::size_t>(display_width(title), 1), kSmallest, kLargest);
  return fmt::format("set label 1 {} at screen 0.5, screen {:.5f} center font ',{:.3g}'\n",
                     gnuplot_text(title, static_cast<std::size_t>(fitting * kLargest / size)),
                     screen(height - kTitleBaseline, height), size);
}

std::string frame_commands() {
  return "set border 3 lc rgb '#404040' lw 0.8\nset tics nomirror out scale 0.6 textcolor rgb '#202020'\n"
         "set style line 100 lt 1 lc rgb '#E0E0E0' lw 0.8 dt solid\nset grid back ls 100\nunset key\n";
}

namespace {

constexpr int kLegendRow = 20;   // [px]
constexpr int kLegendFoot = 12;  // [px] below the last row
constexpr int kSample = 34;      // [px]
constexpr int kSampleGap = 9;    // [px] between a line sample and its name
constexpr int kColumnGap = 30;   // [px]
constexpr double kLegendCharacter =
    7.2;                          // [px] upper estimate of the mean width of DejaVu Sans at 10.5 points
constexpr int kLongestName = 64;  // [characters] longer names are cut in the middle

int entry_width(const LegendEntry& entry) {
  const auto characters = std::min<std::size_t>(display_width(entry.name), kLongestName);
  return kSample + kSampleGap + static_cast<int>(kLegendCharacter * characters);
}

/// The left edges of the columns, counted from 0, and the right edge of the last column [px].
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

/// The middle of the line sample of entry `i`, from the lower left corner of the picture [px].
std::pair<int, int> place(const Legend& legend, std::size_t i) {
  const auto columns = legend.column_left.size();
  const int row = i / columns;
  return {legend.column_left[i % columns] + kSample / 2, legend.height - kLegendRow * row - kLegendRow / 2};
}

}  // namespace

Legend laid_out(const std::vector<LegendEntry>& entries, int width) {
  std::size_t columns = std::max<std::size_t>(entries.size(), 1);
  while (columns > 1 && edges(entries, columns).back() > width) --columns;
  // Rows of equal length look better than full rows and a short last one.
  const std::size_t rows = (entries.size() + columns - 1) / columns;
  columns = rows > 0 ? (entries.size() + rows - 1) / rows : 1;
  auto left = edges(entries, columns);
  const int margin = std::max(0, (width - left.back() + kColumnGap) / 2);
  left.pop_back();
  for (int& x : left) x += margin;
  return {entries, width, static_cast<int>(rows) * kLegendRow + kLegendFoot, left};
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
                       gnuplot_text(shortened_middle(entry.name, kLongestName), kLongestName),
                       x + kSample / 2 + kSampleGap, y);
    if (!entry.line.empty())
      plot += fmt::format(", \\\n  $k{} with vectors nohead {} notitle", i, entry.line);
    if (!entry.point.empty()) plot += fmt::format(", \\\n  $m{} with points {} notitle", i, entry.point);
  }
  return out + "plot NaN notitle" + plot + "\n";
}

namespace {

constexpr double kDigitPixels = 8;  // DejaVu Sans at 11 points

/// Space beside the outermost points, as a factor.
constexpr double kLogRoom = 1.3;

std::string short_number(double value) {
  static constexpr std::array<const char*, 5> kSuffixes{"", "k", "M", "G", "T"};
  std::size_t suffix = 0;
  while (value >= 999.5 && suffix + 1 < kSuffixes.size()) {
    value /= 1000;
    ++suffix;
  }
  return fmt::format("{:.3g}{}", value, kSuffixes[suffix]);
}

/// The ticks at these multiples of every power of ten.
std::vector<Tick> decade_ticks(const Axis& axis, const std::vector<double>& steps) {
  std::vector<Tick> ticks;
  const int first = std::floor(std::log10(axis.low));
  for (int decade = first; std::pow(10, decade) <= axis.high; ++decade) {
    for (const double step : steps) {
      const double position = step * std::pow(10, decade);
      if (position >= axis.low && position <= axis.high) ticks.push_back({position, short_number(position)});
    }
  }
  return ticks;
}

}  // namespace

Axis power_of_two_axis(double least, double most, int pixels) {
  const bool single = least == most;
  Axis axis{least / (single ? 2.2 : kLogRoom), most * (single ? 2.2 : kLogRoom), {}};
  const int first = std::ceil(std::log2(axis.low));
  const int last = std::floor(std::log2(axis.high));
  const double digits = std::floor(std::log10(axis.high)) + 1;
  const double fitting = std::max(2.0, std::floor(pixels / ((digits + 1) * kDigitPixels)));
  const int stride = std::ceil((last - first + 1) / fitting);
  for (int power = first; power <= last; ++power) {
    const bool labelled = (power - first) % std::max(stride, 1) == 0;
    axis.ticks.push_back({std::exp2(power), labelled ? fmt::format("{}", std::exp2(power)) : ""});
  }
  return axis;
}

Axis decimal_log_axis(double least, double most) {
  const double room = most / least < 4 ? 1.8 : kLogRoom;
  Axis axis{least / room, most * room, {}};
  const bool many = std::log10(axis.high / axis.low) > 3;
  axis.ticks = decade_ticks(axis, many ? std::vector<double>{1} : std::vector<double>{1, 2, 5});
  if (axis.ticks.size() < 3) axis.ticks = decade_ticks(axis, {1, 1.5, 2, 3, 4, 5, 6, 8});
  return axis;
}

Axis linear_axis(double least, double most, int count) {
  const double span = most > least ? most - least : std::max(std::abs(most), 1.0);
  const double raw = span / count;
  const double decade = std::pow(10, std::floor(std::log10(raw)));
  double step = 10 * decade;
  for (const double factor : {5.0, 2.0, 1.0}) {
    if (factor * decade >= raw * 0.999) step = factor * decade;
  }
  const double first = std::floor(least / step + 1e-9);
  Axis axis{first * step, std::max(most, (first + 1) * step), {}};
  for (double tick = first; tick * step <= axis.high * (1 + 1e-9); ++tick) {
    axis.ticks.push_back({tick * step, fmt::format("{:.6g}", tick * step)});
  }
  return axis;
}

std::string axis_commands(char name, const Axis& axis) {
  std::string ticks;
  for (const Tick& tick : axis.ticks) {
    ticks += fmt::format("{}'{}' {}", ticks.empty() ? "" : ", ", tick.label, shortest(tick.position));
  }
  return fmt::format("set {0}range [{1}:{2}]\nset {0}tics ({3})\n", name, shortest(axis.low),
                     shortest(axis.high), ticks);
}

}  // namespace stepcast
