#include "scenarios/reader/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/error.hpp"
#include "core/utf8.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostPoints = 100'000;
constexpr std::size_t kMostKeys = 64;
constexpr std::size_t kMostBytes = 256 << 20;

void check_count(std::size_t points, const YamlValue& at) {
  if (points <= kMostPoints) return;
  throw LimitError(fmt::format("{}: {}: more than {} points; sweep fewer values or split the scenario",
                               to_string(at.node().place), at.path(), kMostPoints));
}

void check_bytes(std::size_t bytes, const YamlValue& at) {
  if (bytes <= kMostBytes) return;
  throw LimitError(
      fmt::format("{}: {}: the values of all points take more than 256 MiB; sweep fewer or smaller",
                  to_string(at.node().place), at.path()));
}

YamlNode whole_number(std::int64_t number, const Place& place) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = std::to_string(number);
  node.place = place;
  return node;
}

/// Expands {from: 1, to: 1024, times: 2} or {from: 0, to: 100, step: 10}.
std::vector<YamlNode> range_values(const YamlValue& value) {
  const YamlMap range = value.map({"from", "to", "times", "step"});
  const std::int64_t from = range.at("from", "an integer").integer(0, 1'000'000'000);
  const std::int64_t to = range.at("to", "an integer").integer(from, 1'000'000'000);
  if (range.has("times") == range.has("step")) value.refuse("expected either times or step");
  const bool times = range.has("times");
  const std::int64_t by =
      times ? range.at("times").integer(2, 1'000'000) : range.at("step").integer(1, 1'000'000'000);
  if (times && from == 0) range.at("from").expected("an integer >= 1 with times");
  std::vector<YamlNode> values;
  for (std::int64_t at = from; at <= to; at = times ? at * by : at + by) {
    values.push_back(whole_number(at, value.node().place));
    check_count(values.size(), value);
  }
  return values;
}

std::vector<YamlNode> values_of(const YamlValue& value) {
  if (value.is(YamlNode::Kind::mapping)) return range_values(value);
  std::vector<YamlNode> values;
  for (const YamlValue& item : value.list()) {
    if (item.is(YamlNode::Kind::nothing)) item.expected("a value");
    values.push_back(item.node());
  }
  if (values.empty()) value.expected("at least one value");
  return values;
}

std::string text_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::scalar) return node.text;
  if (node.kind == YamlNode::Kind::nothing) return "~";
  std::string text;
  for (const YamlNode& item : node.items) text += (text.empty() ? "[" : ", ") + text_of(item);
  for (const auto& [key, value] : node.entries)
    text += (text.empty() ? "{" : ", ") + key.text + ": " + text_of(value);
  return text + (node.kind == YamlNode::Kind::sequence ? "]" : "}");
}

std::size_t bytes_of(const YamlNode& node) {
  std::size_t bytes = sizeof node + node.text.size();
  for (const YamlNode& item : node.items) bytes += bytes_of(item);
  for (const auto& [key, value] : node.entries) bytes += bytes_of(key) + bytes_of(value);
  return bytes;
}

/// Memory of the values of a key in a point, without their copy in the name of the point.
std::size_t bytes_of(const std::string& key, const std::vector<YamlNode>& values) {
  std::size_t bytes = 0;
  for (const YamlNode& value : values) bytes += sizeof(Assignment) + key.size() + bytes_of(value);
  return bytes;
}

void add_key(const std::string& key, const YamlValue& value, std::vector<std::string>& keys) {
  if (std::find(keys.begin(), keys.end(), key) != keys.end()) return;
  if (keys.size() == kMostKeys) value.refuse(fmt::format("more than {} swept keys", kMostKeys));
  keys.push_back(key);
}

/// Appends the product of the keys to the points. @param bytes  memory of all points so far, updated
void add_product(const YamlMap& map, std::vector<Point>& points, std::vector<std::string>& keys,
                 std::size_t& bytes) {
  const auto entries = map.entries();
  if (entries.empty()) map.value().expected("at least one key");
  std::vector<Point> product(1);
  std::size_t of_product = 0;
  for (const auto& [key, value] : entries) {
    add_key(key, value, keys);
    const auto values = values_of(value);
    check_count(points.size() + product.size() * values.size(), value);
    of_product = of_product * values.size() + product.size() * bytes_of(key, values);
    check_bytes(bytes + of_product, value);
    std::vector<Point> longer;
    for (const Point& point : product) {
      for (const YamlNode& one : values) {
        longer.push_back(point);
        longer.back().values.push_back({key, one});
      }
    }
    product = std::move(longer);
  }
  bytes += of_product;
  points.insert(points.end(), product.begin(), product.end());
}

}  // namespace

std::string point_name(const std::vector<Assignment>& values) {
  std::string name;
  for (const Assignment& one : values)
    name += (name.empty() ? "" : ", ") + one.path + "=" + text_of(one.value);
  return name;
}

void read_sweep(const YamlValue& value, std::vector<Point>& points, std::vector<std::string>& keys) {
  std::size_t bytes = 0;
  if (value.is(YamlNode::Kind::sequence)) {
    for (const YamlValue& part : value.list()) add_product(part.any_map(), points, keys, bytes);
  } else {
    add_product(value.any_map(), points, keys, bytes);
  }
  std::unordered_set<std::string> names;
  for (Point& point : points) {
    point.name = point_name(point.values);
    if (!names.insert(point.name).second)
      value.refuse(fmt::format("expected different points, got \"{}\" twice", printable(point.name)));
  }
}

}  // namespace stepcast
