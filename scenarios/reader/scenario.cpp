#include "scenarios/reader/scenario.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "core/fields.hpp"
#include "core/text.hpp"
#include "scenarios/keys/scenario_keys.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario_documents.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kMostFiles = 8;

bool other_kind(const YamlNode& base, const YamlNode& over) {
  const YamlNode *of_base = base.find("kind"), *of_over = over.find("kind");
  return of_base != nullptr && of_over != nullptr && of_base->text != of_over->text;
}

/// Puts the entries of `over` into `base`.
void merge(YamlNode& base, YamlNode&& over) {
  base.place = over.place;  // a missing key is missed in the file that inherits
  for (auto& [key, value] : over.entries) {
    const auto found = std::ranges::find_if(
        base.entries, [&key = key](const auto& entry) { return entry.first.text == key.text; });
    const bool removed = value.kind == YamlNode::Kind::nothing;
    if (found == base.entries.end()) {
      base.entries.emplace_back(std::move(key), std::move(value));
    } else if (removed) {
      base.entries.erase(found);
    } else if (key.text != "sweep" && value.kind == YamlNode::Kind::mapping &&
               found->second.kind == YamlNode::Kind::mapping && !other_kind(found->second, value)) {
      merge(found->second, std::move(value));
    } else {
      found->first = std::move(key);
      found->second = std::move(value);
    }
  }
}

YamlNode read_file(const std::filesystem::path& file, std::vector<std::filesystem::path>& files) {
  YamlNode root = read_scenario_document(file);
  if (root.kind != YamlNode::Kind::mapping) YamlValue(root, "").expected("a scenario, a mapping");
  files.push_back(file);
  const YamlNode* named = root.find("defaults");
  if (named == nullptr) return root;
  const YamlValue name(*named, "defaults");
  const auto parent = path_of_defaults(name, file);
  if (std::ranges::any_of(files, [&](const auto& known) { return same_scenario(known, parent); }))
    name.refuse(fmt::format("{} would inherit from itself", parent.string()));
  if (files.size() >= kMostFiles)
    name.refuse(fmt::format("more than {} scenarios inherit from one another", kMostFiles));
  std::erase_if(root.entries, [](const auto& entry) { return entry.first.text == "defaults"; });
  YamlNode base = read_file(parent, files);
  std::erase_if(base.entries,
                [](const auto& entry) { return entry.first.text == "name"; });  // of the other's results
  merge(base, std::move(root));
  return base;
}

}  // namespace

InheritedScenario read_with_defaults(const std::filesystem::path& file) {
  InheritedScenario scenario;
  scenario.root = read_file(file, scenario.defaults);
  scenario.defaults.erase(scenario.defaults.begin());  // the file itself
  return scenario;
}

namespace {

/// A list, each of whose entries `read` reads.
template <class One>
Field<Scenario> list_field(const Key& key, std::vector<One> Scenario::*all, One (*read)(const YamlValue&)) {
  return field<Scenario>(key, [all, read](const YamlValue& list, Scenario& scenario) {
    const auto values = list.list();
    if (values.size() > kMostEntries) list.refuse(fmt::format("more than {} entries", kMostEntries));
    for (const YamlValue& value : values) (scenario.*all).push_back(read(value));
  });
}

/// Measurements with a key are calibrations.
void move_calibrations(Scenario& scenario) {
  auto& all = scenario.measurements;
  const auto first = std::stable_partition(all.begin(), all.end(),
                                           [](const Measurement& one) { return one.range.key.empty(); });
  scenario.calibrations.insert(scenario.calibrations.end(), first, all.end());
  all.erase(first, all.end());
}

/// Refuses the kind `fitted` in a scenario without calibration: fitted figures are excluded from the
/// statistics, so the scenario must say what they were fitted to.
void check_figures(const YamlMap& map, Scenario& scenario) {
  move_calibrations(scenario);
  if (!scenario.calibrations.empty() || !map.has("published")) return;
  for (const YamlValue& figure : map.at("published").list()) {
    const YamlValue kind = figure.any_map().at("kind");
    if (kind.text() == "fitted")
      kind.refuse("fitted needs a calibrate entry in this scenario; add one or use predicted");
  }
}

/// Reads `name:`.
void read_name(const YamlValue& value, Scenario& scenario) {
  scenario.name = value.text();
  const bool plain = std::all_of(scenario.name.begin(), scenario.name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
  });
  if (!plain) value.expected("small letters, digits, - and _ (it names the results folder)");
}

/// Reads `uncertainty:`. `off` is the same as `none`; programs that write YAML turn it into `false`. Kinds
/// and classes of inputs are checked where the ranges are read.
void read_uncertainty(const YamlValue& value, Scenario& scenario) {
  const std::vector<std::string> words{"default", "none", "off", "false"};
  Uncertainty& uncertainty = scenario.uncertainty;
  if (!value.is(YamlNode::Kind::mapping)) {
    uncertainty.on = uncertainty.discrepancy = value.one_of(words) == 0;
    return;
  }
  for (const auto& [kind, entry] : value.any_map().entries()) {
    uncertainty.classes[kind] = entry.node();
    if (kind == "discrepancy") uncertainty.discrepancy = entry.one_of(words) == 0;
  }
}

const Fields<Scenario>& scenario_fields() {
  static const Fields<Scenario> fields{
      {field<Scenario>({"name", KeyType::text, "required",
                        "name of the scenario and of its results folder: small letters, digits, `-`, `_`"},
                       read_name, "a name for the results"),
       field("description", &Scenario::description, text(), otherwise("empty"), "printed by `show scenario`"),
       field<Scenario>({"defaults", KeyType::path, "none",
                        "another scenario, whose keys hold if this one does not give them: a path, or a name "
                        "in the same file"}),
       field<Scenario>({"sweep", KeyType::sweep, "none", "values that vary from point to point"},
                       [](const YamlValue& value, Scenario& scenario) {
                         read_sweep(value, scenario.points, scenario.sweep_keys);
                       }),
       field<Scenario>({"set", KeyType::settings, "none", "values that hold for every point"},
                       [](const YamlValue& value, Scenario& scenario) {
                         scenario.settings = read_point(value, Null::removes_key);
                       }),
       list_field({"assumed", KeyType::mappings, "none", "ranges of inputs that are not known", assumed_keys},
                  &Scenario::assumptions, read_assumption),
       list_field({"calibrate", KeyType::mappings, "none", "measurements with a `key` that is fitted to them",
                   measured_keys},
                  &Scenario::calibrations, read_calibration),
       list_field(
           {"measured", KeyType::mappings, "none", "measurements from which forecasts learn", measured_keys},
           &Scenario::measurements, read_measurement),
       list_field(
           {"published", KeyType::mappings, "none", "published figures to compare with", published_keys},
           &Scenario::published, read_published),
       field<Scenario>(
           {"uncertainty",
            Allowed({KeyType::name, KeyType::boolean, KeyType::settings}, {}, {"default", "none", "off"}),
            "default",
            "what intervals cover in addition to `assumed`: everything, nothing, or a class for each kind of "
            "input"},
           read_uncertainty)},
      check_figures};
  return fields;
}

}  // namespace

const Keys& whole_scenario_keys() {
  return scenario_fields().keys();
}

const Keys& scenario_keys() {
  static const Keys keys = joined_keys({whole_scenario_keys(), run_keys()});
  return keys;
}

namespace {

/// True if a path belongs to the scenario as a whole, not to the document of one run.
bool is_scenario_key(const std::string& path) {
  static const std::vector<std::string> keys = names_of(whole_scenario_keys());
  const std::string key = path.substr(0, path.find_first_of(".["));
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// For a path "sweep.KEY" or "sweep[i].KEY": the mapping of swept keys, and KEY. A null mapping for other
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

/// Sets a value of the scenario as a whole. The keys of a sweep are paths themselves: "strategy.bucket" is
/// one key.
void assign_scenario_key(YamlNode& root, const Assignment& one) {
  const auto [map, swept] = swept_key(root, one.path);
  if (map == nullptr) return assign(root, one);
  const auto named = [&swept = swept](const auto& entry) { return entry.first.text == swept; };
  const auto found = std::find_if(map->entries.begin(), map->entries.end(), named);
  if (one.value.kind == YamlNode::Kind::nothing) {
    if (found == map->entries.end())
      throw InputError(to_string(one.value.place) + ": " + printable(one.path) + ": there is no such key");
    map->entries.erase(found);
    return;
  }
  if (found != map->entries.end()) {
    found->second = one.value;
    return;
  }
  YamlNode key;
  key.kind = YamlNode::Kind::scalar;
  key.text = swept;
  key.place = one.value.place;
  map->entries.emplace_back(std::move(key), one.value);
}

/// The document of one run: the tree without the keys of the scenario as a whole.
YamlNode run_document(const YamlNode& root) {
  YamlNode rest = root;
  std::erase_if(rest.entries, [](const auto& entry) { return is_scenario_key(entry.first.text); });
  return rest;
}

/// Refuses settings of swept keys.
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

bool sets_all(const Point& point, const std::vector<Assignment>& values) {
  return std::ranges::all_of(values, [&](const Assignment& one) {
    return std::ranges::any_of(
        point.values, [&](const Assignment& other) { return point_name({other}) == point_name({one}); });
  });
}

std::optional<std::size_t> matching_point(const Scenario& scenario, const std::vector<Assignment>& values) {
  const std::vector<std::size_t> points = matching_points(scenario, values);
  return points.empty() ? std::nullopt : std::optional(points.front());
}

std::vector<std::size_t> matching_points(const Scenario& scenario, const std::vector<Assignment>& values) {
  std::vector<std::size_t> points;
  for (std::size_t i = 0; i < scenario.points.size(); ++i) {
    const Point& point = scenario.points[i];
    if (!sets_all(point, values)) continue;
    if (!points.empty()) {
      const std::size_t fewest = scenario.points[points.front()].values.size();
      if (point.values.size() > fewest) continue;
      if (point.values.size() < fewest) points.clear();
    }
    points.push_back(i);
  }
  return points;
}

std::string place_of(const Scenario& scenario, const std::vector<Assignment>& values) {
  return values.empty() ? scenario.file.string() : to_string(values.front().value.place);
}

std::vector<Assignment> values_of(const Scenario& scenario, const std::vector<Assignment>& point,
                                  const std::vector<double>& inputs, const std::vector<double>& calibrated) {
  std::vector<Assignment> values = scenario.settings;
  values.insert(values.end(), point.begin(), point.end());
  for (std::size_t i = 0; i < inputs.size(); ++i)
    values.push_back(assumed_value(scenario.assumptions[i], inputs[i]));
  for (std::size_t i = 0; i < calibrated.size(); ++i) {
    Assumption exact = scenario.calibrations[i].range;
    exact.low = exact.high = calibrated[i];
    values.push_back(assumed_value(exact, 0));
  }
  return values;
}

std::vector<Assignment> middle_values(const Scenario& scenario, const Point& point) {
  const std::vector<double> middle(scenario.assumptions.size(), 0.5);
  std::vector<double> calibrated;
  for (const Measurement& target : scenario.calibrations)
    calibrated.push_back((target.range.low + target.range.high) / 2);
  return values_of(scenario, point.values, middle, calibrated);
}

Scenario read_scenario_tree(const YamlNode& root, const std::filesystem::path& file) {
  Scenario scenario;
  scenario.file = file;
  read_fields(YamlValue(root, "").any_map(), scenario_fields(), scenario);
  if (scenario.points.empty()) scenario.points.push_back({scenario.name, {}});
  scenario.document = run_document(root);
  return scenario;
}

Scenario read_scenario(const std::filesystem::path& file, const std::vector<Assignment>& settings) {
  check_scenario_file(file);
  InheritedScenario inherited = read_with_defaults(file);
  std::vector<Assignment> run_settings;
  for (const Assignment& one : settings) {
    if (one.path == "defaults")
      throw InputError(to_string(one.value.place) + ": defaults: can only be given in a scenario's file");
    is_scenario_key(one.path) ? assign_scenario_key(inherited.root, one) : run_settings.push_back(one);
  }
  Scenario scenario = read_scenario_tree(inherited.root, file);
  scenario.defaults = std::move(inherited.defaults);
  scenario.sweep_replaced = std::ranges::any_of(settings, [](const Assignment& one) {
    return one.path.substr(0, one.path.find_first_of(".[")) == "sweep";
  });
  scenario.settings.insert(scenario.settings.end(), run_settings.begin(), run_settings.end());
  check_not_swept(scenario);
  return scenario;
}

}  // namespace stepcast
