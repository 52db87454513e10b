#include "scenarios/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostPoints = 100'000;

void check_count(std::size_t points, const YamlValue& at) {
  if (points <= kMostPoints) return;
  throw LimitError(fmt::format("{}: {}: more than {} points; sweep fewer values or split the scenario",
                               to_string(at.node().place), at.path(), kMostPoints));
}

YamlNode whole_number(std::int64_t number, const Place& place) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = std::to_string(number);
  node.place = place;
  return node;
}

/// {from: 1, to: 1024, times: 2} or {from: 0, to: 100, step: 10}
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
  for (const YamlValue& item : value.list()) values.push_back(item.node());
  if (values.empty()) value.expected("at least one value");
  return values;
}

std::string text_of(const YamlNode& node) {
  if (node.kind == YamlNode::Kind::scalar) return node.text;
  std::string text;
  for (const YamlNode& item : node.items) text += (text.empty() ? "[" : ", ") + text_of(item);
  for (const auto& [key, value] : node.entries)
    text += (text.empty() ? "{" : ", ") + key.text + ": " + text_of(value);
  return text + (node.kind == YamlNode::Kind::sequence ? "]" : "}");
}

void add_product(const YamlMap& map, std::vector<Point>& points, std::vector<std::string>& keys) {
  std::vector<Point> product(1);
  for (const auto& [key, value] : map.entries()) {
    if (std::find(keys.begin(), keys.end(), key) == keys.end()) keys.push_back(key);
    const auto values = values_of(value);
    check_count(points.size() + product.size() * values.size(), value);
    std::vector<Point> longer;
    for (const Point& point : product) {
      for (const YamlNode& one : values) {
        longer.push_back(point);
        longer.back().values.push_back({key, one});
      }
    }
    product = std::move(longer);
  }
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
  if (value.is(YamlNode::Kind::sequence)) {
    for (const YamlValue& part : value.list()) add_product(part.any_map(), points, keys);
  } else {
    add_product(value.any_map(), points, keys);
  }
  for (Point& point : points) point.name = point_name(point.values);
}

}  // namespace stepcast
