#include "core/parse_number.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <string>

namespace stepcast {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool has_decimal_form(std::string_view text) {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return false;
  return !(text.size() > 1 && text[0] == '0' &&
           is_digit(text[1]));  // 010 is octal in YAML 1.1, decimal to people
}

template <class Number>
std::optional<Number> parse(std::string_view text) {
  if (!has_decimal_form(text)) return std::nullopt;
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

struct Prefix {
  std::string_view text;
  double factor;
};

constexpr std::array kDecimal{Prefix{"", 1.0},  Prefix{"k", 1e3},  Prefix{"M", 1e6},
                              Prefix{"G", 1e9}, Prefix{"T", 1e12}, Prefix{"P", 1e15}};
constexpr std::array kBinary{Prefix{"Ki", 0x1p10}, Prefix{"Mi", 0x1p20}, Prefix{"Gi", 0x1p30},
                             Prefix{"Ti", 0x1p40}};
constexpr std::array kTime{Prefix{"s", 1.0},   Prefix{"ms", 1e-3},  Prefix{"us", 1e-6},
                           Prefix{"ns", 1e-9}, Prefix{"min", 60.0}, Prefix{"h", 3600.0}};

template <class Prefixes>
std::optional<double> prefix_factor(std::string_view unit, std::string_view base, const Prefixes& prefixes) {
  if (!unit.ends_with(base)) return std::nullopt;
  unit.remove_suffix(base.size());
  for (const Prefix& prefix : prefixes) {
    if (prefix.text == unit) return prefix.factor;
  }
  return std::nullopt;
}

std::optional<double> byte_factor(std::string_view unit) {
  if (const auto binary = prefix_factor(unit, "B", kBinary)) return binary;
  return prefix_factor(unit, "B", kDecimal);
}

std::optional<double> unit_factor(std::string_view unit, Dimension dimension) {
  if (dimension == Dimension::time) return prefix_factor(unit, "", kTime);
  if (dimension == Dimension::bytes) return byte_factor(unit);
  if (dimension == Dimension::flops) return prefix_factor(unit, "flop", kDecimal);
  if (dimension == Dimension::flops_per_second) return prefix_factor(unit, "flop/s", kDecimal);
  if (const auto bits = prefix_factor(unit, "bit/s", kDecimal)) return *bits / 8;
  if (!unit.ends_with("/s")) return std::nullopt;
  return byte_factor(unit.substr(0, unit.size() - 2));
}

}  // namespace

std::optional<double> parse_number(std::string_view text) {
  const auto number = parse<double>(text);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

std::optional<std::int64_t> parse_integer(std::string_view text) {
  return parse<std::int64_t>(text);
}

std::optional<double> parse_quantity(std::string_view text, Dimension dimension) {
  const auto space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto number = parse_number(text.substr(0, space));
  const auto factor = unit_factor(text.substr(space + 1), dimension);
  if (!number || !factor) return std::nullopt;
  const double value = *number * *factor;
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::string_view example(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return "1.5 us";
    case Dimension::bytes:
      return "4 MiB";
    case Dimension::flops:
      return "8.2 Gflop";
    case Dimension::bytes_per_second:
      return "25 GB/s";
    case Dimension::flops_per_second:
      return "19.5 Tflop/s";
  }
  return "";
}

ValueRange valid_range(Dimension dimension) {
  switch (dimension) {
    case Dimension::time:
      return {0, 1e12, "up to 1e12 s"};
    case Dimension::bytes:
      return {0, 1e18, "up to 1e18 B"};
    case Dimension::bytes_per_second:
      return {1, 1e18, "from 1 B/s to 1e18 B/s"};
    case Dimension::flops:
      return {0, 1e30, "up to 1e30 flop"};
    case Dimension::flops_per_second:
      return {1, 1e30, "from 1 flop/s to 1e30 flop/s"};
  }
  return {};
}

}  // namespace stepcast
