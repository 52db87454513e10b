#include "core/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace stepcast {
namespace {

constexpr auto kNumberText = [](double number) { return value_text(KeyType::number, number); };

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

Form<double> number(double low, double high) {
  return {Allowed(KeyType::number, {low, high}),
          [low, high](const YamlValue& value) { return value.number(low, high); }, kNumberText};
}

Form<double> number_below(double low, double end) {
  const Allowed allowed(KeyType::number, {.low = low, .high = end, .without_high = true});
  const auto read = [low, end, allowed](const YamlValue& value) {
    const double number = value.number(low, end);
    if (number >= end) value.expected(fmt::format("a number from {}", range_text(allowed)));
    return number;
  };
  return {allowed, read, kNumberText};
}

Form<std::int64_t> integer(std::int64_t low, std::int64_t high) {
  const double end = high == INT64_MAX ? std::numeric_limits<double>::infinity() : static_cast<double>(high);
  return {Allowed(KeyType::integer, {static_cast<double>(low), end}),
          [low, high](const YamlValue& value) { return value.integer(low, high); },
          [](std::int64_t number) { return std::to_string(number); }};
}

Form<bool> boolean() {
  return {KeyType::boolean, [](const YamlValue& value) { return value.boolean(); },
          [](bool yes) { return yes ? "true" : "false"; }};
}

Form<Seconds> duration(double low) {
  return {Allowed(KeyType::time, {low}), [low](const YamlValue& value) { return value.seconds(low); },
          [](auto value) { return value_text(KeyType::time, value.value); }};
}

Form<Bytes> bytes(double low) {
  return {Allowed(KeyType::bytes, {low}), [low](const YamlValue& value) { return value.bytes(low); },
          [](auto value) { return value_text(KeyType::bytes, value.value); }};
}

Form<BytesPerSecond> bandwidth() {
  return {Allowed(KeyType::bandwidth, {.low = 0, .without_low = true}),
          [](const YamlValue& value) { return value.bytes_per_second(); },
          [](auto value) { return value_text(KeyType::bandwidth, value.value); }};
}

Form<FlopsPerSecond> work_rate() {
  return {Allowed(KeyType::work_rate, {.low = 0, .without_low = true}),
          [](const YamlValue& value) { return value.flops_per_second(); },
          [](auto value) { return value_text(KeyType::work_rate, value.value); }};
}

Form<std::string> text(const std::vector<KeyType>& types) {
  return {types, [](const YamlValue& value) { return value.text(); },
          [](const std::string& text) { return text.empty() ? "none" : text; }};
}

Form<std::vector<std::string>> texts() {
  const auto read = [](const YamlValue& value) {
    return value.is(YamlNode::Kind::sequence) ? text_list().read(value) : std::vector{value.text()};
  };
  return {Allowed({KeyType::text, KeyType::texts}), read, [](const auto&) { return "none"; }};
}

Form<std::vector<std::string>> text_list() {
  const auto read = [](const YamlValue& value) {
    std::vector<std::string> all;
    for (const YamlValue& one : value.list()) all.push_back(one.text());
    return all;
  };
  return {KeyType::texts, read, [](const auto&) { return "none"; }};
}

Form<std::vector<double>> numbers(double low, double high) {
  const auto read = [low, high](const YamlValue& value) {
    std::vector<double> all;
    for (const YamlValue& one : value.list()) all.push_back(one.number(low, high));
    return all;
  };
  return {Allowed(KeyType::numbers, {low, high}), read, [](const auto&) { return "none"; }};
}

Form<std::string> one_of(const std::vector<std::string>& words) {
  return {Allowed(KeyType::name, {}, words),
          [words](const YamlValue& value) { return words[value.one_of(words)]; },
          [](const std::string& word) { return word; }};
}

Allowed with_word(const Allowed& allowed, std::string_view word) {
  std::vector<KeyType> types = allowed.types();
  types.push_back(KeyType::name);
  return {types, allowed.numbers, {std::string(word)}};
}

Default required(std::string_view expected) {
  return {"required", std::string(expected)};
}

Default otherwise(std::string_view text) {
  return {text};
}

std::optional<YamlValue> field_detail::find_value(const YamlMap& map, const Key& key,
                                                  const std::string& expected, std::string_view kind) {
  if (!is_of_kind(key, kind)) return std::nullopt;
  const bool must = key.default_value == "required";
  if (!must && !map.has(key.name)) return std::nullopt;
  const YamlValue value = map.at(key.name, expected);
  if (key.source == Key::Source::no) return value;
  return key.source == Key::Source::must ? with_its_source(value) : without_source(value, expected);
}

std::string field_detail::kind_in(const YamlValue& value, const Key& kind, const std::string& expected) {
  const std::vector<std::string>& kinds = kind.allowed.words();
  return kinds[value.any_map().at(kind.name, expected).one_of(kinds)];
}

YamlValue plain_value(const YamlMap& map, std::string_view key) {
  return without_source(map.at(key), "a value");
}

}  // namespace stepcast
