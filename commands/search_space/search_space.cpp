#include "commands/search_space/search_space.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "core/error.hpp"
#include "core/keys.hpp"
#include "core/text.hpp"
#include "scenarios/experiment/placement.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/sweep.hpp"
#include "strategies/collectives/algorithm_choice.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

Place place_of(const std::string& key) {
  return {std::make_shared<const std::string>("--over " + key), 0, 0};
}

YamlNode scalar(const std::string& key, const std::string& text) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  node.place = place_of(key);
  return node;
}

std::vector<std::string> split(const std::string& text, char by) {
  std::vector<std::string> parts;
  std::size_t at = 0;
  for (std::size_t next = text.find(by); next != std::string::npos; next = text.find(by, at)) {
    parts.push_back(text.substr(at, next - at));
    at = next + 1;
  }
  parts.push_back(text.substr(at));
  return parts;
}

constexpr double kLargestWhole = 0x1p53;  // not all larger whole numbers are doubles

/// A number and its unit with the space before: 1.5 and " us" for "1.5 us".
struct Measure {
  double number = 0;
  std::string unit;
  bool whole = false;
};

std::optional<Measure> measure_of(const std::string& text) {
  const auto space = text.find(' ');
  const std::string digits = text.substr(0, space);
  const auto number = parse_number(digits);
  if (!number) return std::nullopt;
  const std::string unit = space == std::string::npos ? "" : text.substr(space);
  const auto integer = parse_integer(digits);
  const bool whole = unit.empty() && integer && std::abs(*number) <= kLargestWhole;
  return Measure{*number, unit, whole};
}

[[noreturn]] void refuse(const std::string& key, const std::string& text, const std::string& expected) {
  throw InputError(fmt::format("--over {}: expected {}, got \"{}\"", key, expected, text));
}

SearchKey range_of(const std::string& key, std::string text) {
  const std::string given = text;
  SearchKey found{{.name = key}};
  if (text.ends_with(":log")) {
    found.parameter.logarithmic = true;
    text.erase(text.size() - 4);
  }
  const auto dots = text.find("..");
  const auto low = measure_of(text.substr(0, dots)), high = measure_of(text.substr(dots + 2));
  if (!low || !high)
    refuse(key, given, "LOW..HIGH or LOW..HIGH:log with two numbers, such as \"1 MiB..100 MiB:log\"");
  double least = low->number;
  if (low->unit != high->unit) {  // 512 KiB..4 MiB is 0.5 MiB..4 MiB
    const bool units = !low->unit.empty() && !high->unit.empty();
    const auto ratio = units ? unit_ratio(low->unit.substr(1), high->unit.substr(1)) : std::nullopt;
    if (!ratio) refuse(key, given, "units of one kind at both ends");
    least *= *ratio;
  }
  if (!(least < high->number)) refuse(key, given, "the lower end first");
  if (found.parameter.logarithmic && least <= 0) refuse(key, given, "a lower end > 0 with :log");
  found.parameter.kind = low->whole && high->whole ? Parameter::Kind::integer : Parameter::Kind::real;
  found.parameter.low = least;
  found.parameter.high = high->number;
  found.unit = high->unit;
  return found;
}

SearchKey choice_of(const std::string& key, const std::vector<YamlNode>& words) {
  SearchKey found{{.name = key, .kind = Parameter::Kind::choice}};
  for (const YamlNode& word : words) found.parameter.choices.push_back(word.text);
  found.words = words;
  return found;
}

SearchKey choice_of(const std::string& key, const std::vector<std::string>& words) {
  std::vector<YamlNode> nodes;
  for (const std::string& word : words) nodes.push_back(scalar(key, word));
  return choice_of(key, nodes);
}

/// The different values of a key in the sweep.
std::vector<YamlNode> swept_values(const Scenario& scenario, const std::string& key) {
  std::vector<YamlNode> values;
  for (const Point& point : scenario.points) {
    for (const Assignment& one : point.values) {
      const bool known = std::any_of(values.begin(), values.end(),
                                     [&](const YamlNode& value) { return value.text == one.value.text; });
      if (one.path == key && one.value.kind == YamlNode::Kind::scalar && !known) values.push_back(one.value);
    }
  }
  return values;
}

SearchKey usual_values(const std::string& key, const Scenario& scenario) {
  const auto swept = swept_values(scenario, key);
  if (swept.size() > 1) return choice_of(key, swept);
  if (key == "strategy.bucket") return range_of(key, "1 MiB..100 MiB:log");
  if (key == "strategy.streams" || key == "strategy.in_flight") return range_of(key, "1..16:log");
  if (key == "strategy.channels") return range_of(key, "1..8");
  if (key == "strategy.overlap") return choice_of(key, std::vector<std::string>{"false", "true"});
  if (key == "strategy.all_reduce") return choice_of(key, algorithm_names());
  if (key == "strategy.inside_node") return choice_of(key, local_part_names());
  if (key == "strategy.between_nodes") return choice_of(key, network_part_names());
  if (key == "placement") return choice_of(key, placement_words().names());
  const std::vector<std::string> known = key_paths(scenario_keys());
  if (std::ranges::find(known, key.substr(0, key.find('['))) == known.end())
    throw InputError(
        fmt::format("--over {}: there is no such key{}", printable(key), word_advice(key, known)));
  throw InputError(
      fmt::format("--over {0}: give its values, such as {0}=1..8, {0}=\"1 us..50 us:log\" or {0}=a|b", key));
}

SearchKey read_key(const std::string& text, const Scenario& scenario) {
  const auto equals = text.find('=');
  const std::string key = text.substr(0, equals);
  if (key.empty()) throw InputError(fmt::format("--over: expected KEY or KEY=VALUES, got \"{}\"", text));
  if (equals == std::string::npos) return usual_values(key, scenario);
  const std::string values = text.substr(equals + 1);
  if (values.find("..") != std::string::npos) return range_of(key, values);
  const auto words = split(values, '|');
  const bool empty =
      std::any_of(words.begin(), words.end(), [](const std::string& word) { return word.empty(); });
  if (words.size() < 2 || empty) refuse(key, values, "LOW..HIGH, LOW..HIGH:log or A|B|C");
  return choice_of(key, words);
}

/// Refuses keys that no searched kind of strategy has: every setting would leave them out.
void check_options(const std::vector<SearchKey>& keys) {
  const auto kinds =
      std::ranges::find(keys, kStrategyKind, [](const SearchKey& key) { return key.parameter.name; });
  if (kinds == keys.end()) return;
  const std::vector<std::string>& words = kinds->parameter.choices;
  for (const SearchKey& key : keys) {
    const std::string& name = key.parameter.name;
    if (std::ranges::none_of(words, [&](const std::string& kind) { return has_option(kind, name); }))
      throw InputError(
          fmt::format("--over {}: none of the strategies {} has this option", name, fmt::join(words, ", ")));
  }
}

}  // namespace

std::vector<SearchKey> read_search_keys(const std::string& over, const Scenario& scenario) {
  std::vector<SearchKey> keys;
  for (const std::string& part : split(over, ',')) {
    const std::size_t first = std::min(part.find_first_not_of(" \n"), part.size());  // after a comma
    keys.push_back(read_key(part.substr(first), scenario));
    for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
      if (keys[i].parameter.name == keys.back().parameter.name)
        throw InputError(fmt::format("--over {}: given twice", keys[i].parameter.name));
    }
  }
  check_options(keys);
  return keys;
}

Space space_of(const std::vector<SearchKey>& keys) {
  Space space;
  for (const SearchKey& key : keys) space.push_back(key.parameter);
  return space;
}

Assignment search_value(const SearchKey& key, double value) {
  const std::string& name = key.parameter.name;
  if (key.parameter.kind == Parameter::Kind::choice)
    return {name, key.words[static_cast<std::size_t>(value)]};
  const bool whole = key.parameter.kind == Parameter::Kind::integer;
  const std::string number = whole ? std::to_string(std::llround(value)) : fmt::format("{:.6g}", value);
  return {name, scalar(name, number + key.unit)};
}

bool has_option(const std::string& kind, const std::string& path) {
  static constexpr std::string_view kStrategy = "strategy.";
  const Strategy* strategy = find_strategy(kind);
  if (!path.starts_with(kStrategy) || strategy == nullptr) return true;
  const std::string option =
      path.substr(kStrategy.size(), path.find('.', kStrategy.size()) - kStrategy.size());
  return option == "kind" || find_key(strategy->keys, option) != nullptr;
}

std::vector<Assignment> search_values(const std::vector<SearchKey>& keys, const Values& values) {
  std::vector<Assignment> all;
  for (std::size_t i = 0; i < keys.size(); ++i) all.push_back(search_value(keys[i], values[i]));
  const auto kind = std::ranges::find(all, kStrategyKind, &Assignment::path);
  if (kind == all.end()) return all;
  const std::string chosen = kind->value.text;
  std::erase_if(all, [&](const Assignment& one) { return !has_option(chosen, one.path); });
  return all;
}

std::string search_name(const std::vector<SearchKey>& keys, const Values& values) {
  return point_name(search_values(keys, values));
}

}  // namespace stepcast
