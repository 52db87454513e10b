#include "scenarios/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/parse_number.hpp"
#include "scenarios/sweep.hpp"

namespace stepcast {
namespace {

/// "1.5 us" as a number and its unit, " us".
struct Measure {
  double number;
  std::string unit;
};

Measure measure_of(const YamlValue& value) {
  const std::string text = value.text();
  const auto space = text.find(' ');
  const auto number = parse_number(text.substr(0, space));
  if (!number) value.expected("a number, or a number and a unit");
  return {*number, space == std::string::npos ? "" : text.substr(space)};
}

Assumption read_range(const YamlMap& map) {
  Assumption range;
  range.key = map.at("key", "the key that is not known").text();
  range.place = map.at("key").node().place;
  const YamlValue ends = map.at("range", "[low, high]");
  const auto list = ends.list();
  if (list.size() != 2) ends.expected("two values, [low, high]");
  const Measure low = measure_of(list[0]), high = measure_of(list[1]);
  if (low.unit != high.unit) ends.expected("two values of the same unit");
  if (!(low.number < high.number)) ends.expected("the lower value first");
  range.low = low.number;
  range.high = high.number;
  range.unit = low.unit;
  return range;
}

Assumption read_assumption(const YamlValue& value) {
  const YamlMap map = value.map({"key", "range", "law", "why"});
  Assumption assumption = read_range(map);
  if (const auto law = map.maybe("law")) {
    assumption.logarithmic = law->one_of({"uniform", "log-uniform"}) == 1;
    if (assumption.logarithmic && assumption.low <= 0) map.at("range").expected("values > 0 for log-uniform");
  }
  assumption.why = map.at("why", "the reason for this range").text();
  return assumption;
}

std::vector<Assignment> read_point(const YamlValue& value) {
  std::vector<Assignment> values;
  for (const auto& [key, one] : value.any_map().entries()) values.push_back({key, one.node()});
  return values;
}

/// A figure in the unit of its column: "0.2318 s" or a plain number.
double figure_of(const YamlValue& value) {
  const std::string text = value.text();
  if (const auto number = parse_number(text)) return *number;
  for (const Dimension dimension : {Dimension::time, Dimension::bytes, Dimension::bytes_per_second}) {
    if (const auto number = parse_quantity(text, dimension)) return *number;
  }
  value.expected("a number, or one with a unit of time, bytes or bytes a second");
}

Feed read_feed(const YamlValue& value) {
  const YamlMap map = value.map({"key", "range", "point", "over", "column", "value", "source"});
  Feed feed;
  feed.range = read_range(map);
  feed.point = read_point(map.at("point", "the values of one point"));
  if (const auto over = map.maybe("over")) feed.over = read_point(*over);
  feed.column = map.at("column", "a column of results.csv").text();
  feed.value = figure_of(map.at("value", "the figure that is fed in"));
  feed.source = map.at("source", "where the figure is from").text();
  return feed;
}

Published read_published(const YamlValue& value) {
  const YamlMap map =
      value.map({"point", "over", "column", "kind", "relation", "value", "tolerance", "source"});
  Published published;
  published.point = read_point(map.at("point", "the values of one point"));
  if (const auto over = map.maybe("over")) published.over = read_point(*over);
  published.column = map.at("column", "a column of results.csv").text();
  const std::vector<std::string> kinds{"predicted", "fitted", "bound", "trend"};
  published.kind = kinds[map.at("kind", "predicted, fitted, bound or trend").one_of(kinds)];
  if (published.kind == "bound") {
    const std::vector<std::string> relations{"at_most", "at_least"};
    published.relation = relations[map.at("relation", "at_most or at_least").one_of(relations)];
  }
  if (published.kind == "trend") {
    const std::vector<std::string> relations{"less_than", "more_than"};
    published.relation =
        relations[map.at("relation", "less_than or more_than, of the point `over`").one_of(relations)];
    if (published.over.empty()) map.at("over", "the point that it is compared with");
  } else {
    published.value = figure_of(map.at("value", "the published figure"));
  }
  if (const auto tolerance = map.maybe("tolerance")) published.tolerance = tolerance->number(0, 10);
  published.source = map.at("source", "where the figure is from").text();
  return published;
}

template <class One>
std::vector<One> read_list(const YamlMap& map, const char* key, One (*read)(const YamlValue&)) {
  std::vector<One> all;
  if (const auto list = map.maybe(key)) {
    for (const YamlValue& value : list->list()) all.push_back(read(value));
  }
  return all;
}

/// Whether a path belongs to what is read here, not to one run.
bool is_outer(const std::string& path) {
  static const std::vector<std::string> outer{"name",    "description", "sweep",    "set",
                                              "assumed", "calibrate",   "published"};
  const std::string key = path.substr(0, path.find_first_of(".["));
  return std::find(outer.begin(), outer.end(), key) != outer.end();
}

/// The mapping of swept keys that "sweep.KEY" or "sweep[i].KEY" means, and KEY; a null mapping for other
/// paths.
std::pair<YamlNode*, std::string> swept_key(YamlNode& root, const std::string& path) {
  const auto dot = path.find('.');
  const std::string holder = path.substr(0, dot);
  if (dot == std::string::npos || (holder != "sweep" && !holder.starts_with("sweep["))) return {nullptr, ""};
  if (holder == "sweep" && root.find("sweep") == nullptr) {
    YamlNode empty;
    empty.kind = YamlNode::Kind::mapping;
    assign(root, {"sweep", empty});
  }
  auto* map = const_cast<YamlNode*>(find_path(root, holder));
  const bool is_map = map != nullptr && map->kind == YamlNode::Kind::mapping;
  return {is_map ? map : nullptr, path.substr(dot + 1)};
}

/// Sets a value of what is read here. The keys of a sweep are paths themselves: "strategy.bucket" is one key.
void assign_outer(YamlNode& root, const Assignment& one) {
  const auto [map, swept] = swept_key(root, one.path);
  if (map == nullptr) return assign(root, one);
  for (auto& [key, value] : map->entries) {
    if (key.text != swept) continue;
    value = one.value;
    return;
  }
  YamlNode key;
  key.kind = YamlNode::Kind::scalar;
  key.text = swept;
  key.place = one.value.place;
  map->entries.emplace_back(std::move(key), one.value);
}

/// The document without the keys that are read here.
YamlNode run_part(const YamlNode& root) {
  YamlNode rest = root;
  std::erase_if(rest.entries, [](const auto& entry) { return is_outer(entry.first.text); });
  return rest;
}

/// A key that is swept cannot be set too.
void check_not_swept(const Scenario& scenario) {
  for (const Assignment& one : scenario.settings) {
    const auto& keys = scenario.sweep_keys;
    if (std::find(keys.begin(), keys.end(), one.path) == keys.end()) continue;
    throw InputError(
        fmt::format("{}: {}: is swept by the scenario; set sweep instead, such as 'sweep={{{}: [...]}}'",
                    to_string(one.value.place), one.path, one.path));
  }
}

}  // namespace

Assignment assumed_value(const Assumption& assumption, double u) {
  const double value = assumption.logarithmic ? assumption.low * std::pow(assumption.high / assumption.low, u)
                                              : assumption.low + u * (assumption.high - assumption.low);
  Assignment assignment{assumption.key, {}};
  assignment.value.kind = YamlNode::Kind::scalar;
  assignment.value.text = fmt::format("{}{}", value, assumption.unit);
  assignment.value.place = assumption.place;
  return assignment;
}

Scenario read_scenario(const std::filesystem::path& file, const std::vector<Assignment>& settings) {
  YamlNode root = read_yaml(file);
  if (root.kind != YamlNode::Kind::mapping) YamlValue(root, "").expected("a scenario, a mapping");
  std::vector<Assignment> inner;
  for (const Assignment& one : settings) {
    is_outer(one.path) ? assign_outer(root, one) : inner.push_back(one);
  }
  Scenario scenario;
  scenario.file = file;
  const YamlMap map = YamlValue(root, "").any_map();
  scenario.name = map.at("name", "a name for the results").text();
  const bool plain = std::all_of(scenario.name.begin(), scenario.name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
  if (!plain) map.at("name").expected("small letters, digits, - and _ (it names the results folder)");
  if (const auto text = map.maybe("description")) scenario.description = text->text();
  if (const auto sweep = map.maybe("sweep")) read_sweep(*sweep, scenario.points, scenario.sweep_keys);
  if (scenario.points.empty()) scenario.points.push_back({scenario.name, {}});
  scenario.assumptions = read_list(map, "assumed", read_assumption);
  scenario.calibrations = read_list(map, "calibrate", read_feed);
  scenario.published = read_list(map, "published", read_published);
  if (const auto given = map.maybe("set")) scenario.settings = read_point(*given);
  scenario.settings.insert(scenario.settings.end(), inner.begin(), inner.end());
  scenario.document = run_part(root);
  check_not_swept(scenario);
  return scenario;
}

}  // namespace stepcast
