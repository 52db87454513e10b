#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>
#include <optional>

#include "core/keys.hpp"
#include "core/text.hpp"
#include "core/typed_numbers.hpp"

namespace stepcast {
namespace {

/// A number as a person writes it in YAML: 0.5, 10,000 as 10000, 1e-8.
std::string plain(double number) {
  std::string text = fmt::format("{:.15g}", number);
  const auto exponent = text.find('e');
  if (exponent == std::string::npos) return text;
  const std::string digits = text.substr(exponent + 2);
  const std::string sign = text[exponent + 1] == '-' ? "-" : "";
  return text.substr(0, exponent) + "e" + sign + digits.substr(digits.find_first_not_of('0'));
}

/// The exponent of a power of ten; empty for any other number.
std::optional<long> exponent_of(double number) {
  if (number <= 0) return std::nullopt;
  const long exponent = std::lround(std::log10(number));
  return number == std::stod(fmt::format("1e{}", exponent)) ? std::optional(exponent) : std::nullopt;
}

/// An end of a range, for people: 0.99, 1000, 10,000, 1048575, and from `exponents_from` on 1e6.
std::string bound(double number, double exponents_from = 1e6) {
  const auto exponent = exponent_of(number);
  if (exponent && (number >= exponents_from || number < 0.01)) return fmt::format("1e{}", *exponent);
  if (number < 10'000 || std::fmod(number, 1000) != 0) return plain(number);
  const auto thousands = static_cast<std::int64_t>(number / 1000);
  return thousands < 1000 ? fmt::format("{},000", thousands)
                          : fmt::format("{},{:03},000", thousands / 1000, thousands % 1000);
}

/// The number of `base` in the largest of these units, descending, that is not above it.
std::string with_unit(double number, std::string_view base, const std::vector<std::string>& units) {
  std::string text;
  for (const std::string& unit : units) {
    const double count = number / unit_ratio(unit, base).value();
    text = fmt::format("{} {}", plain(count), unit);
    if (count >= 1 - 1e-12) break;
  }
  return text;
}

std::string numbers_text(const NumberRange& range, KeyType type) {
  const bool has_unit = range.low > 0 && (type == KeyType::time || type == KeyType::bytes);
  const std::string low = has_unit ? value_text(type, range.low) : bound(range.low);
  if (range.high >= 1e300) return fmt::format("{} {}", range.without_low ? ">" : ">=", low);
  const bool tiny = exponent_of(range.low) && range.low < 0.01;  // then both ends are powers of ten
  return fmt::format("{} to {}{}", low, range.without_high ? "below " : "",
                     bound(range.high, tiny ? 1000 : 1e6));
}

}  // namespace

bool is_list(KeyType type) {
  return type >= KeyType::list;
}

KeyType item_of(KeyType all) {
  using enum KeyType;
  constexpr std::array kItems{value, value, value, text, name, layer, integer, number, mapping};
  return kItems.at(ordinal(all) - ordinal(list));
}

std::string value_text(KeyType type, double value) {
  const bool binary = type == KeyType::bytes && value > 0 && std::fmod(value, 1024) == 0;
  if (type == KeyType::time) return value == 0 ? "0 s" : with_unit(value, "s", {"s", "ms", "us", "ns"});
  if (binary) return with_unit(value, "B", {"GiB", "MiB", "KiB"});
  if (type == KeyType::bytes) return with_unit(value, "B", {"GB", "MB", "kB", "B"});
  if (type == KeyType::bandwidth) return with_unit(value, "B/s", {"TB/s", "GB/s", "MB/s", "kB/s", "B/s"});
  if (type != KeyType::work_rate) return plain(value);
  return with_unit(value, "flop/s", {"Tflop/s", "Gflop/s", "Mflop/s", "kflop/s", "flop/s"});
}

std::string types_text(const Allowed& allowed, bool articles) {
  static const std::vector<std::string> names = words_of(
      "text, name, name of a layer, path, integer, number, boolean, time, bytes, bandwidth, work rate, "
      "mapping, mapping of values, sweep, value, list, list of lists, list of values, list of texts, list of "
      "names, list of layer names, list of integers, list of numbers, list of mappings");
  std::string text;
  for (const KeyType& type : allowed.types()) {
    if (!text.empty()) text += &type == &allowed.types().back() ? " or " : ", ";
    if (articles && type != KeyType::bytes && type != KeyType::text)
      text += type == KeyType::integer ? "an " : "a ";
    text += names.at(ordinal(type));
  }
  return text;
}

std::string range_text(const Allowed& allowed, std::string_view mark) {
  std::vector<std::string> parts;
  if (!std::isinf(allowed.numbers.low))
    parts.push_back(numbers_text(allowed.numbers, allowed.types().front()));
  for (const std::string& word : allowed.words()) parts.push_back(fmt::format("{0}{1}{0}", mark, word));
  if (!allowed.rule.empty()) parts.emplace_back(allowed.rule);
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string allowed_text(const Allowed& allowed) {
  const std::string range = range_text(allowed);
  return types_text(allowed) + (range.empty() ? "" : ": " + range);
}

}  // namespace stepcast
