#include "report/text/quantity_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stepcast {
namespace {

struct Scale {
  double factor;
  std::string_view unit;
};

/// The largest scale that `value` reaches after rounding to three digits, or the first scale if it reaches
/// none.
Scale scale_of(double value, const Scale* first, const Scale* last) {
  Scale best = *first;
  for (const Scale* scale = first; scale != last; ++scale) {
    if (std::abs(value) >= 0.9995 * scale->factor) best = *scale;
  }
  return best;
}

std::string three_digits(double value) {
  const double magnitude = std::abs(value);
  if (magnitude == 0) return "0";
  const double rounded = magnitude * (1 + 5e-4);
  const int decimals = 2 - static_cast<int>(std::floor(std::log10(rounded)));
  return fixed(value, std::clamp(decimals, 0, 6));
}

template <std::size_t N>
std::string scaled(double value, const std::array<Scale, N>& scales, std::string_view unit) {
  if (!std::isfinite(value)) return "-";
  const Scale scale = scale_of(value, scales.data(), scales.data() + N);
  const auto suffix = fmt::format("{}{}", scale.unit, unit);
  return three_digits(value / scale.factor) + (suffix.empty() ? "" : " ") + suffix;
}

}  // namespace

std::string human(double value, std::string_view unit) {
  static constexpr std::array<Scale, 6> kScales{
      {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}}};
  return scaled(value, kScales, unit);
}

std::string human(Seconds time) {
  static constexpr std::array<Scale, 7> kScales{
      {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}, {100, "s"}, {600, "min"}, {3600, "h"}}};
  if (time.value == 0) return "0 s";
  if (std::abs(time.value) >= 2 * 86400.0)
    return scaled(time.value, std::array<Scale, 1>{{{86400, "d"}}}, "");
  Scale scale = scale_of(time.value, kScales.data(), kScales.data() + kScales.size());
  if (!std::isfinite(time.value)) return "-";
  if (scale.unit == "s") scale.factor = 1;
  if (scale.unit == "min") scale.factor = 60;
  return fmt::format("{} {}", three_digits(time.value / scale.factor), scale.unit);
}

std::string human(Bytes bytes) {
  static constexpr std::array<Scale, 5> kScales{
      {{1, "B"}, {1024, "KiB"}, {1048576, "MiB"}, {1073741824, "GiB"}, {1099511627776, "TiB"}}};
  return scaled(bytes.value, kScales, "");
}

std::string fixed(double value, int decimals) {
  const auto text = fmt::format("{:.{}f}", value, decimals);
  return text.find_first_not_of("-0.") == std::string::npos ? fmt::format("{:.{}f}", 0.0, decimals) : text;
}

}  // namespace stepcast
