#include "core/yaml.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/text.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kShortList = 8;  // up to this number, all known keys are listed after a suggestion

std::string got(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::nothing:
      return "nothing";
    case YamlNode::Kind::scalar:
      return fmt::format("\"{}\"", printable(node.text));
    case YamlNode::Kind::sequence:
      return "a list";
    case YamlNode::Kind::mapping:
      return "a mapping";
  }
  return "";
}

std::string child_path(const std::string& parent, std::string_view key) {
  return parent.empty() ? printable(key) : parent + "." + printable(key);
}

/// Advice for an unknown key: the nearest known key. All known keys are listed where they are few, or where
/// none is near.
std::string alternatives_to(std::string_view key, const std::vector<std::string>& known) {
  std::string nearest = word_advice(key, known);
  if (!nearest.empty() && known.size() > kShortList) return nearest;
  return fmt::format("{} (expected one of: {})", nearest, fmt::join(known, ", "));
}

double quantity(const YamlValue& value, Dimension dimension, double low, std::string_view bound) {
  const YamlNode& node = value.node();
  std::optional<double> number;
  if (node.kind == YamlNode::Kind::scalar) number = parse_quantity(node.text, dimension);
  const bool a_duration = dimension == Dimension::time && low > 0;
  if (!number || *number < low) {
    value.refuse(fmt::format("expected a value {} with its unit, such as \"{}\", got {}{}", bound,
                             a_duration ? "10 min" : example(dimension), got(node),
                             quantity_advice(node.text, dimension)));
  }
  const ValueRange valid = valid_range(dimension);
  if (*number < valid.low || *number > valid.high) value.expected(fmt::format("a value {}", valid.text));
  return *number;
}

std::string at_least(double low, std::string_view unit = "") {
  return fmt::format(">= {}{}", low, unit);
}

constexpr double kPositive = 1e-300;

bool text_is_one_of(const YamlNode& node, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, node.text) != words.end();
}

/// The integer that a user meant by 1_000, 1,000, 1e3 or 1.5M.
std::optional<std::int64_t> nearly_integer(std::string text) {
  std::erase_if(text, [](char c) { return c == '_' || c == ',' || c == '\''; });
  double factor = 1;
  for (const auto& [suffix, size] : {std::pair{'k', 1e3}, std::pair{'K', 1e3}, std::pair{'M', 1e6}}) {
    if (text.empty() || text.back() != suffix) continue;
    factor = size;
    text.pop_back();
    break;
  }
  const auto number = parse_number(text);
  const double whole = number ? std::round(*number * factor) : 0;
  if (!number || std::abs(whole) > 1e15 || std::abs(*number * factor - whole) > 1e-9 * std::abs(whole))
    return std::nullopt;
  return static_cast<std::int64_t>(whole);
}

std::string integer_advice(const YamlNode& node, std::int64_t low, std::int64_t high) {
  if (node.kind != YamlNode::Kind::scalar || node.quoted || parse_integer(node.text)) return "";
  const auto meant = nearly_integer(node.text);
  if (!meant || *meant < low || *meant > high) return "";
  return fmt::format("; did you mean {}?", *meant);
}

/// Advice for a quoted scalar where a number is expected: the message prints every scalar in quotes, so that
/// "8" and 8 would look alike.
const char* unquoted(const YamlNode& node) {
  return node.quoted ? " without quotes" : "";
}

std::string escaped(char c) {
  if (c == '"' || c == '\\') return std::string("\\") + c;
  if (c == '\n') return "\\n";
  if (c == '\t') return "\\t";
  return (c >= 0 && c < ' ') || c == 0x7f ? fmt::format("\\x{:02x}", int{c}) : std::string(1, c);
}

}  // namespace

void YamlValue::expected(std::string_view what) const {
  refuse(fmt::format("expected {}, got {}", what, got(*node_)));
}

void YamlValue::refuse(std::string_view message) const {
  const std::string path = path_.empty() ? "" : path_ + ": ";
  throw InputError(fmt::format("{}: {}{}", to_string(node_->place), path, message));
}

std::string YamlValue::text() const {
  if (node_->kind != YamlNode::Kind::scalar || node_->text.empty()) expected("text");
  return node_->text;
}

bool YamlValue::boolean() const {
  if (node_->kind == YamlNode::Kind::scalar && !node_->quoted) {
    if (node_->text == "true") return true;
    if (node_->text == "false") return false;
  }
  const bool yes = text_is_one_of(*node_, {"yes", "on", "y", "True", "TRUE"});
  const bool no = text_is_one_of(*node_, {"no", "off", "n", "False", "FALSE"});
  refuse(fmt::format("expected true or false{}, got {}{}", unquoted(*node_), got(*node_),
                     yes  ? "; did you mean true?"
                     : no ? "; did you mean false?"
                          : ""));
}

std::int64_t YamlValue::integer(std::int64_t low, std::int64_t high) const {
  std::optional<std::int64_t> number;
  if (node_->kind == YamlNode::Kind::scalar && !node_->quoted) number = parse_integer(node_->text);
  if (!number || *number < low || *number > high) {
    refuse(fmt::format("expected {}{}, got {}{}",
                       high == INT64_MAX ? fmt::format("an integer >= {}", low)
                                         : fmt::format("an integer from {} to {}", low, high),
                       unquoted(*node_), got(*node_), integer_advice(*node_, low, high)));
  }
  return *number;
}

double YamlValue::number(double low, double high) const {
  std::optional<double> value;
  if (node_->kind == YamlNode::Kind::scalar && !node_->quoted) value = parse_number(node_->text);
  if (!value || *value < low || *value > high) {
    expected((high >= 1e300 ? fmt::format("a number >= {}", low)
                            : fmt::format("a number from {} to {}", low, high)) +
             unquoted(*node_));
  }
  return *value;
}

Seconds YamlValue::seconds(double low) const {
  return {quantity(*this, Dimension::time, low, at_least(low, low > 0 ? " s" : ""))};
}
Bytes YamlValue::bytes(double low) const {
  return {quantity(*this, Dimension::bytes, low, at_least(low))};
}
Flops YamlValue::flops(double low) const {
  return {quantity(*this, Dimension::flops, low, at_least(low))};
}
BytesPerSecond YamlValue::bytes_per_second() const {
  return {quantity(*this, Dimension::bytes_per_second, kPositive, "> 0")};
}
FlopsPerSecond YamlValue::flops_per_second() const {
  return {quantity(*this, Dimension::flops_per_second, kPositive, "> 0")};
}

std::size_t YamlValue::one_of(const std::vector<std::string>& words) const {
  const auto what = [&] { return fmt::format("one of {}", fmt::join(words, ", ")); };
  if (node_->kind != YamlNode::Kind::scalar) expected(what());
  const auto found = std::find(words.begin(), words.end(), node_->text);
  if (found == words.end())
    refuse(fmt::format("expected {}, got {}{}", what(), got(*node_), word_advice(node_->text, words)));
  return found - words.begin();
}

YamlMap YamlValue::any_map(std::string_view example) const {
  if (node_->kind != YamlNode::Kind::mapping)
    expected(fmt::format("a mapping{}{}", example.empty() ? "" : ", such as ", example));
  return YamlMap(*this);
}

YamlMap YamlValue::map(std::vector<std::string> known_keys) const {
  if (node_->kind != YamlNode::Kind::mapping)
    expected(fmt::format("a mapping with keys {}", fmt::join(known_keys, ", ")));
  for (const auto& [key, value] : node_->entries) {
    if (std::find(known_keys.begin(), known_keys.end(), key.text) != known_keys.end()) continue;
    throw InputError(fmt::format("{}: {}: unknown key{}", to_string(key.place), child_path(path_, key.text),
                                 alternatives_to(key.text, known_keys)));
  }
  return YamlMap(*this);
}

std::vector<YamlValue> YamlValue::list() const {
  if (node_->kind != YamlNode::Kind::sequence) expected("a list");
  std::vector<YamlValue> values;
  values.reserve(node_->items.size());
  for (std::size_t i = 0; i < node_->items.size(); ++i) {
    values.emplace_back(node_->items[i], fmt::format("{}[{}]", path_, i));
  }
  return values;
}

YamlValue YamlMap::at(std::string_view key, std::string_view expected) const {
  const YamlNode* found = value_.node().find(key);
  if (found == nullptr) {
    throw InputError(fmt::format("{}: {}: missing (expected {})", to_string(value_.node().place),
                                 child_path(value_.path(), key), expected));
  }
  return {*found, child_path(value_.path(), key)};
}

std::optional<YamlValue> YamlMap::maybe(std::string_view key) const {
  const YamlNode* found = value_.node().find(key);
  if (found == nullptr) return std::nullopt;
  return YamlValue(*found, child_path(value_.path(), key));
}

std::vector<std::pair<std::string, YamlValue>> YamlMap::entries() const {
  std::vector<std::pair<std::string, YamlValue>> result;
  for (const auto& [key, value] : value_.node().entries) {
    result.emplace_back(key.text, YamlValue(value, child_path(value_.path(), key.text)));
  }
  return result;
}

std::string yaml_quoted(const std::string& text) {
  std::string result = "\"";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_length(text, at);
    if (length == 0) result += "\uFFFD";  // the replacement character
    if (length == 1) result += escaped(text[at]);
    if (length > 1) result += text.substr(at, length);
    at += std::max<std::size_t>(length, 1);
  }
  return result + "\"";
}

std::string yaml_numbers(const std::vector<double>& values) {
  std::string result = "[";
  for (const double value : values) result += fmt::format("{}{:.6g}", result.size() > 1 ? ", " : "", value);
  return result + "]";
}

}  // namespace stepcast
