#include "report/text/display_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

namespace stepcast {

std::string json_text(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

namespace {

bool starts_code_point(char c) {
  return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
}

/// The number of bytes of the first `count` code points.
std::size_t byte_after(std::string_view text, std::size_t count) {
  std::size_t end = 0;
  while (end < text.size() && (count > 0 || !starts_code_point(text[end]))) {
    count -= starts_code_point(text[end++]) ? 1 : 0;
  }
  return end;
}

}  // namespace

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_code_point));
}

std::string without_controls(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool c1 =
        byte == 0xC2 && next >= 0x80 && next < 0xA0;  // U+0080 to U+009F are control characters too
    out += byte < 0x20 || byte == 0x7F || c1 ? '?' : text[i];
    i += c1 ? 1 : 0;
  }
  return out;
}

std::string valid_utf8(std::string_view text) {
  return nlohmann::json::parse(json_text(text)).get<std::string>();
}

std::string shortened(std::string_view text, std::size_t width) {
  if (width == 0 || display_width(text) <= width) return std::string(text);
  const std::string_view dots = width > 3 ? "..." : "";
  return std::string(text.substr(0, byte_after(text, width - dots.size()))) + std::string(dots);
}

std::string shortened_middle(std::string_view text, std::size_t width) {
  const std::size_t full_width = display_width(text);
  if (full_width <= width || width < 5) return shortened(text, width);
  const std::size_t tail = (width - 3) / 2;
  const std::size_t head = width - 3 - tail;
  return std::string(text.substr(0, byte_after(text, head))) + "..." +
         std::string(text.substr(byte_after(text, full_width - tail)));
}

namespace {

struct UnitScale {
  double factor;
  std::string_view unit;
};

/// The largest scale that `value` reaches after rounding to three digits, or the first scale if it reaches
/// none.
UnitScale scale_of(double value, const UnitScale* first, const UnitScale* last) {
  UnitScale best = *first;
  for (const UnitScale* scale = first; scale != last; ++scale) {
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
std::string scaled(double value, const std::array<UnitScale, N>& scales, std::string_view unit) {
  if (!std::isfinite(value)) return "-";
  const UnitScale scale = scale_of(value, scales.data(), scales.data() + N);
  const auto suffix = fmt::format("{}{}", scale.unit, unit);
  return three_digits(value / scale.factor) + (suffix.empty() ? "" : " ") + suffix;
}

}  // namespace

std::string human(double value, std::string_view unit) {
  static constexpr std::array<UnitScale, 6> kScales{
      {{1, ""}, {1e3, "k"}, {1e6, "M"}, {1e9, "G"}, {1e12, "T"}, {1e15, "P"}}};
  return scaled(value, kScales, unit);
}

std::string human(Seconds time) {
  static constexpr std::array<UnitScale, 7> kScales{
      {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"}, {100, "s"}, {600, "min"}, {3600, "h"}}};
  if (time.value == 0) return "0 s";
  if (std::abs(time.value) >= 2 * 86400.0)
    return scaled(time.value, std::array<UnitScale, 1>{{{86400, "d"}}}, "");
  UnitScale scale = scale_of(time.value, kScales.data(), kScales.data() + kScales.size());
  if (!std::isfinite(time.value)) return "-";
  if (scale.unit == "s") scale.factor = 1;
  if (scale.unit == "min") scale.factor = 60;
  return fmt::format("{} {}", three_digits(time.value / scale.factor), scale.unit);
}

std::string human(Bytes bytes) {
  static constexpr std::array<UnitScale, 5> kScales{
      {{1, "B"}, {1024, "KiB"}, {1048576, "MiB"}, {1073741824, "GiB"}, {1099511627776, "TiB"}}};
  return scaled(bytes.value, kScales, "");
}

std::string fixed(double value, int decimals) {
  const auto text = fmt::format("{:.{}f}", value, decimals);
  return text.find_first_not_of("-0.") == std::string::npos ? fmt::format("{:.{}f}", 0.0, decimals) : text;
}

}  // namespace stepcast
