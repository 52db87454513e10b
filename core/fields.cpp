#include "core/fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <set>

namespace stepcast {

std::string_view lasting(std::string text) {
  static std::mutex mutex;
  static std::set<std::string> texts;
  const std::lock_guard lock(mutex);
  return *texts.insert(std::move(text)).first;
}

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

std::string range(double low, double high) {
  if (high >= 1e300) return fmt::format(">= {}", bound(low));
  const bool tiny = exponent_of(low) && low < 0.01;  // then both ends are powers of ten
  return fmt::format("{} to {}", bound(low), bound(high, tiny ? 1000 : 1e6));
}

struct Unit {
  double size;
  const char* name;
};

/// The number in the largest of these units, descending, that is not above it.
template <std::size_t N>
std::string with_unit(double number, const std::array<Unit, N>& units) {
  for (const Unit& unit : units) {
    if (number >= unit.size * (1 - 1e-12)) return fmt::format("{} {}", plain(number / unit.size), unit.name);
  }
  return fmt::format("{} {}", plain(number / units.back().size), units.back().name);
}

std::string time_text(double seconds) {
  static constexpr std::array<Unit, 4> kUnits{{{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  return seconds == 0 ? "0 s" : with_unit(seconds, kUnits);
}

std::string bytes_text(double bytes) {
  static constexpr std::array<Unit, 4> kBinary{
      {{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}, {1, "B"}}};
  static constexpr std::array<Unit, 4> kDecimal{{{1e9, "GB"}, {1e6, "MB"}, {1e3, "kB"}, {1, "B"}}};
  return std::fmod(bytes, 1024) == 0 && bytes > 0 ? with_unit(bytes, kBinary) : with_unit(bytes, kDecimal);
}

std::string rate_text(double rate, const char* unit) {
  static constexpr std::array<Unit, 5> kPrefixes{{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}}};
  return with_unit(rate, kPrefixes) + unit;
}

/// A lower end with its unit; 0 needs none.
std::string lower_end(double low, const std::string& with_unit) {
  return low > 0 ? ">= " + with_unit : ">= 0";
}

}  // namespace

Form<double> number(double low, double high) {
  return {"number", lasting(range(low, high)),
          [low, high](const YamlValue& value) { return value.number(low, high); }, plain};
}

Form<double> number_below(double low, double end) {
  const std::string_view range = lasting(fmt::format("{} to below {}", bound(low), bound(end)));
  const auto read = [low, end, range](const YamlValue& value) {
    const double number = value.number(low, end);
    if (number >= end) value.expected(fmt::format("a number from {}", range));
    return number;
  };
  return {"number", range, read, plain};
}

Form<std::int64_t> integer(std::int64_t low, std::int64_t high) {
  return {"integer", lasting(range(low, high == INT64_MAX ? 1e300 : high)),
          [low, high](const YamlValue& value) { return value.integer(low, high); },
          [](std::int64_t number) { return std::to_string(number); }};
}

Form<bool> boolean() {
  return {"boolean", "", [](const YamlValue& value) { return value.boolean(); },
          [](bool yes) { return yes ? "true" : "false"; }};
}

Form<Seconds> duration(double low) {
  return {"time", lasting(lower_end(low, time_text(low))),
          [low](const YamlValue& value) { return value.seconds(low); },
          [](Seconds time) { return time_text(time.value); }};
}

Form<Bytes> bytes(double low) {
  return {"bytes", lasting(lower_end(low, bytes_text(low))),
          [low](const YamlValue& value) { return value.bytes(low); },
          [](Bytes size) { return bytes_text(size.value); }};
}

Form<BytesPerSecond> bandwidth() {
  return {"bandwidth", "> 0", [](const YamlValue& value) { return value.bytes_per_second(); },
          [](BytesPerSecond rate) { return rate_text(rate.value, "B/s"); }};
}

Form<FlopsPerSecond> work_rate() {
  return {"work rate", "> 0", [](const YamlValue& value) { return value.flops_per_second(); },
          [](FlopsPerSecond rate) { return rate_text(rate.value, "flop/s"); }};
}

Form<std::string> text(std::string_view type) {
  return {type, "", [](const YamlValue& value) { return value.text(); },
          [](const std::string& text) { return text.empty() ? "none" : text; }};
}

Form<std::vector<std::string>> texts() {
  const auto read = [](const YamlValue& value) {
    std::vector<std::string> all;
    if (!value.is(YamlNode::Kind::sequence)) return std::vector{value.text()};
    for (const YamlValue& one : value.list()) all.push_back(one.text());
    return all;
  };
  return {"text or list of texts", "", read, [](const auto&) { return "none"; }};
}

Form<std::vector<std::string>> text_list() {
  const auto read = [](const YamlValue& value) {
    std::vector<std::string> all;
    for (const YamlValue& one : value.list()) all.push_back(one.text());
    return all;
  };
  return {"list of texts", "", read, [](const auto&) { return "none"; }};
}

Form<std::vector<double>> numbers(double low, double high) {
  const auto read = [low, high](const YamlValue& value) {
    std::vector<double> all;
    for (const YamlValue& one : value.list()) all.push_back(one.number(low, high));
    return all;
  };
  return {"list of numbers", lasting(range(low, high)), read, [](const auto&) { return "none"; }};
}

Form<std::string> one_of(std::vector<std::string> words) {
  const std::string_view range = joined_words(words);
  return {"name", range,
          [words = std::move(words)](const YamlValue& value) { return words[value.one_of(words)]; },
          [](const std::string& word) { return word; }};
}

std::string_view joined_words(const std::vector<std::string>& words) {
  return lasting(fmt::format("{}", fmt::join(words, ", ")));
}

Default required(std::string_view expected) {
  return {"required", std::string(expected)};
}

Default otherwise(std::string_view text) {
  return {text};
}

namespace {

/// The value of `{value: ..., source: ...}`; a value without a source is refused.
YamlValue with_its_source(const YamlValue& value) {
  const YamlMap pair = value.map({"value", "source"});
  pair.at("source", "where the value comes from").text();
  return pair.at("value");
}

YamlValue without_source(const YamlValue& value, const std::string& expected) {
  if (!value.is(YamlNode::Kind::mapping)) return value;
  return value.map({"value", "source"}).at("value", expected);
}

}  // namespace

std::optional<YamlValue> field_detail::find_value(const YamlMap& map, const Key& key,
                                                  const std::string& expected, std::string_view kind) {
  if (!key.only_with.empty()) {
    const auto kinds = words_of(key.only_with);
    if (std::find(kinds.begin(), kinds.end(), kind) == kinds.end()) return std::nullopt;
  }
  const bool must = key.default_value == "required";
  if (!must && !map.has(key.name)) return std::nullopt;
  const YamlValue value = map.at(key.name, expected);
  if (key.source == Key::Source::no) return value;
  return key.source == Key::Source::must ? with_its_source(value) : without_source(value, expected);
}

std::string field_detail::kind_in(const YamlValue& value, const Key& kind, const std::string& expected) {
  const std::vector<std::string> kinds = words_of(kind.range);
  return kinds[value.any_map().at(kind.name, expected).one_of(kinds)];
}

YamlValue plain_value(const YamlMap& map, std::string_view key) {
  return without_source(map.at(key), "a value");
}

}  // namespace stepcast
