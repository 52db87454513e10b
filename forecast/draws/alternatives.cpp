#include "forecast/draws/alternatives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "core/keys.hpp"
#include "scenarios/keys/scenario_keys.hpp"

namespace stepcast {
namespace {

/// The swept keys that are details.
std::set<std::string> details_of(const Scenario& scenario) {
  std::set<std::string> details;
  for (const auto& [path, key] : keys_with_paths(scenario_keys())) {
    if (key.detail && std::ranges::find(scenario.sweep_keys, path) != scenario.sweep_keys.end())
      details.insert(path);
  }
  return details;
}

/// The keys that differ between points with equally many workers.
std::set<std::string> keys_of_alternatives(const Scenario& scenario) {
  std::map<std::pair<std::string, std::string>, std::string> first;  // by number of workers and key
  std::set<std::string> keys;
  for (const Point& point : scenario.points) {
    const auto found = std::ranges::find(point.values, "workers", &Assignment::path);
    const std::string workers = found == point.values.end() ? "" : found->value.text;
    for (const Assignment& one : point.values) {
      const std::string text = point_name({one});
      if (first.emplace(std::pair(workers, one.path), text).first->second != text) keys.insert(one.path);
    }
  }
  return keys;
}

/// The points' values of these keys as text.
std::vector<std::string> values_of(const Scenario& scenario,
                                   const std::function<bool(const std::string& path)>& counts) {
  std::vector<std::string> all;
  for (const Point& point : scenario.points) {
    std::set<std::string> values;
    for (const Assignment& one : point.values) {
      if (counts(one.path)) values.insert(point_name({one}));
    }
    all.push_back(fmt::format("{}", fmt::join(values, ", ")));
  }
  return all;
}

std::vector<std::size_t> numbered(const std::vector<std::string>& texts) {
  std::map<std::string, std::size_t> numbers;
  std::vector<std::size_t> all;
  for (const std::string& text : texts) all.push_back(numbers.emplace(text, numbers.size()).first->second);
  return all;
}

}  // namespace

Alternatives alternatives_of(const Scenario& scenario) {
  const std::set<std::string> details = details_of(scenario), keys = keys_of_alternatives(scenario);
  const auto without_details =
      values_of(scenario, [&](const std::string& path) { return !details.contains(path); });
  Alternatives all;
  all.layouts = numbered(values_of(
      scenario, [&](const std::string& path) { return keys.contains(path) && !details.contains(path); }));
  all.details =
      numbered(values_of(scenario, [&](const std::string& path) { return details.contains(path); }));
  for (const std::string& text : without_details)
    all.places.push_back(std::ranges::find(without_details, text) - without_details.begin());
  return all;
}

}  // namespace stepcast
