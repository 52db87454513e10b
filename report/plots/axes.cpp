#include "report/plots/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "report/results/results.hpp"

namespace stepcast {
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
  const int first = static_cast<int>(std::floor(std::log10(axis.low)));
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
  const int first = static_cast<int>(std::ceil(std::log2(axis.low)));
  const int last = static_cast<int>(std::floor(std::log2(axis.high)));
  const double digits = std::floor(std::log10(axis.high)) + 1;
  const double fitting = std::max(2.0, std::floor(pixels / ((digits + 1) * kDigitPixels)));
  const int stride = static_cast<int>(std::ceil((last - first + 1) / fitting));
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
