#include "scenarios/reader/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/error.hpp"
#include "core/fields.hpp"
#include "core/text.hpp"

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

constexpr std::int64_t kMostValue = 1'000'000'000;

/// {from: 1, to: 1024, times: 2} or {from: 0, to: 100, step: 10} as written.
struct CountedValues {
  std::int64_t from = 0, to = 0;
  std::optional<std::int64_t> times, step;
};

const Fields<CountedValues>& range_fields() {
  static const Fields<CountedValues> fields{
      field("from", &CountedValues::from, integer(0, kMostValue), required("an integer"),
            "first value; at least 1 with `times`"),
      field("to", &CountedValues::to, integer(0, kMostValue), required("an integer"), "the values end here"),
      field("times", &CountedValues::times, integer(2, 1'000'000), "factor from one value to the next"),
      field("step", &CountedValues::step, integer(1, kMostValue), "difference from one value to the next")};
  return fields;
}

std::vector<YamlNode> range_values(const YamlValue& value) {
  CountedValues range;
  const YamlMap map = read_mapping(value, range_fields(), range);
  map.at("to").integer(range.from, kMostValue);
  if (range.times.has_value() == range.step.has_value())
    value.refuse("expected either times or step, such as {from: 1, to: 64, times: 2}");
  if (range.times && range.from == 0) map.at("from").expected("an integer >= 1 with times");
  std::vector<YamlNode> values;
  for (std::int64_t at = range.from; at <= range.to;
       at = range.times ? at * *range.times : at + *range.step) {
    values.push_back(whole_number(at, value.node().place));
    check_count(values.size(), value);
  }
  return values;
}

/// Expands "8..256", which doubles from the first number, as in `stepcast init --workers`.
std::optional<std::vector<YamlNode>> doubled_values(const YamlValue& value) {
  const std::string& text = value.node().text;
  const auto dots = text.find("..");
  if (!value.is(YamlNode::Kind::scalar) || dots == std::string::npos) return std::nullopt;
  const auto from = parse_integer(text.substr(0, dots)), to = parse_integer(text.substr(dots + 2));
  if (!from || !to || *from < 1 || *to < *from || *to > 1'000'000'000)
    value.expected("FIRST..LAST of integers from 1 to 1e9, which doubles from FIRST, such as 8..256");
  std::vector<YamlNode> values;
  for (std::int64_t at = *from; at <= *to; at *= 2) values.push_back(whole_number(at, value.node().place));
  return values;
}

std::vector<YamlNode> values_of(const YamlValue& value) {
  if (value.is(YamlNode::Kind::mapping)) return range_values(value);
  if (auto doubled = doubled_values(value)) return std::move(*doubled);
  if (!value.is(YamlNode::Kind::sequence)) value.expected("a list of values, such as [1, 2, 4], or 1..4");
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
void append_product(const std::vector<std::pair<std::string, YamlValue>>& entries, std::vector<Point>& points,
                    std::vector<std::string>& keys, std::size_t& bytes) {
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

/// The values of each entry of `include` or `exclude`, a list of mappings from paths to values.
std::vector<std::vector<Assignment>> read_points(const YamlValue& list) {
  std::vector<std::vector<Assignment>> points;
  for (const YamlValue& item : list.list()) {
    points.emplace_back();
    for (const auto& [key, value] : item.any_map().entries()) {
      if (value.is(YamlNode::Kind::nothing)) value.expected("a value");
      points.back().push_back({key, value.node()});
    }
    if (points.back().empty()) item.expected("at least one key");
  }
  return points;
}

bool has_all(const Point& point, const std::vector<Assignment>& values) {
  return std::ranges::all_of(values, [&](const Assignment& wanted) {
    return std::ranges::any_of(point.values, [&](const Assignment& one) {
      return one.path == wanted.path && text_of(one.value) == text_of(wanted.value);
    });
  });
}

/// Removes the points from `first` on that have all values of an entry of `exclude`.
void exclude_points(const YamlValue& list, std::size_t first, std::vector<Point>& points) {
  std::size_t number = 0;
  std::vector<bool> excluded(points.size());
  for (const auto& values : read_points(list)) {
    bool any = false;
    for (std::size_t i = first; i < points.size(); ++i) {
      if (!has_all(points[i], values)) continue;
      any = excluded[i] = true;
    }
    if (!any) list.list()[number].refuse("no point of this sweep has " + printable(point_name(values)));
    ++number;
  }
  std::vector<Point> kept(points.begin(), points.begin() + first);
  for (std::size_t i = first; i < points.size(); ++i) {
    if (!excluded[i]) kept.push_back(std::move(points[i]));
  }
  points = std::move(kept);
}

/// Appends the points of one mapping: the product of its keys without `exclude`, then `include`.
void add_points(const YamlMap& map, std::vector<Point>& points, std::vector<std::string>& keys,
                std::size_t& bytes) {
  auto entries = map.entries();
  if (entries.empty()) map.value().expected("at least one key");
  std::erase_if(entries,
                [](const auto& entry) { return entry.first == "include" || entry.first == "exclude"; });
  const std::size_t first = points.size();
  if (!entries.empty()) append_product(entries, points, keys, bytes);
  if (const auto list = map.maybe("exclude")) exclude_points(*list, first, points);
  if (const auto list = map.maybe("include")) {
    for (const auto& values : read_points(*list)) {
      for (const Assignment& one : values) add_key(one.path, *list, keys);
      points.push_back({"", values});
      check_count(points.size(), *list);
    }
  }
  if (points.size() == first) map.value().expected("at least one point");
}

}  // namespace

std::string point_name(const std::vector<Assignment>& values) {
  std::string name;
  for (const Assignment& one : values)
    name += (name.empty() ? "" : ", ") + one.path + "=" + text_of(one.value);
  return name;
}

void read_sweep(const YamlValue& value, std::vector<Point>& points, std::vector<std::string>& keys) {
  constexpr const char* kExample = "{workers: [1, 2, 4]}";
  std::size_t bytes = 0;
  if (value.is(YamlNode::Kind::sequence)) {
    for (const YamlValue& part : value.list()) add_points(part.any_map(kExample), points, keys, bytes);
  } else {
    add_points(value.any_map(kExample), points, keys, bytes);
  }
  std::unordered_set<std::string> names;
  for (Point& point : points) {
    point.name = point_name(point.values);
    if (!names.insert(point.name).second)
      value.refuse(fmt::format("expected different points, got \"{}\" twice", printable(point.name)));
  }
}

}  // namespace stepcast
