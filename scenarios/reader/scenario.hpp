#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/yaml.hpp"
#include "scenarios/reader/read_figures.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {

/// A scenario's tree after its `defaults:`, and the files that it names, the nearest first.
struct InheritedScenario {
  YamlNode root;
  std::vector<std::filesystem::path> defaults;
};

/// Reads a scenario file. Where it has `defaults: OTHER.yaml`, the keys of that scenario are taken over,
/// except those that this file gives or removes (`null`). Mappings are merged key by key, unless both have a
/// `kind` and the kinds differ; `sweep` and lists are replaced as a whole. Paths are relative to the file
/// that they stand in.
/// @throws InputError for a file that inherits from itself, or from more than 8 files one after the other
InheritedScenario read_with_defaults(const std::filesystem::path& file);

/// Uncertainty that intervals cover in addition to `assumed:` (key `uncertainty`).
struct Uncertainty {
  bool on = true;           ///< false: `uncertainty: none`
  bool discrepancy = true;  ///< what the model itself gets wrong
  /// For each kind of input, the class of its source, or `none`. Kinds that are missing have the default
  /// class.
  std::map<std::string, YamlNode> classes;
};

/// A scenario file with its sweep expanded into points. `document` keeps the keys that describe one run;
/// unknown keys in it are reported when an experiment is built from it.
struct Scenario {
  std::filesystem::path file;
  std::vector<std::filesystem::path> defaults;  ///< scenarios that it inherits from, the nearest first
  std::string name, description;
  YamlNode document;
  std::vector<Assignment> settings;  ///< `set:` and `--set`, for every point
  std::vector<std::string> sweep_keys;
  std::vector<Point> points;
  bool sweep_replaced = false;  ///< `--set` has changed the sweep
  std::vector<Assumption> assumptions;
  std::vector<Measurement> calibrations;  ///< those to which a key is fitted
  std::vector<Measurement> measurements;  ///< those that weigh draws
  std::vector<Published> published;
  Uncertainty uncertainty;
};

/// Reads a scenario. `settings` (`--set`) replace its values first.
/// @throws InputError; LimitError for a sweep of more than 100,000 points
Scenario read_scenario(const std::filesystem::path& file, const std::vector<Assignment>& settings);

/// The scenario of a tree without `defaults`. @param file  where it stands, or would stand
Scenario read_scenario_tree(const YamlNode& root, const std::filesystem::path& file);

/// True if the point sets all of these values.
bool sets_all(const Point& point, const std::vector<Assignment>& values);

/// Of the points that set all of these values, those that set the fewest others: usually one, or none.
std::vector<std::size_t> matching_points(const Scenario& scenario, const std::vector<Assignment>& values);

/// The first of them, if there is one.
std::optional<std::size_t> matching_point(const Scenario& scenario, const std::vector<Assignment>& values);

/// Where the values of a point stand, for errors: FILE:LINE:COLUMN, or the scenario's file if there are none.
std::string place_of(const Scenario& scenario, const std::vector<Assignment>& values);

/// All values that are set for a point: settings, point, assumptions and calibrated keys.
/// @param inputs  one draw of the assumptions, each in [0, 1)
/// @param calibrated  fitted values of the calibrated keys
std::vector<Assignment> values_of(const Scenario& scenario, const std::vector<Assignment>& point,
                                  const std::vector<double>& inputs, const std::vector<double>& calibrated);

/// All values that are set for a point, with every assumption and calibration in the middle of its range.
/// These values are checked before a run.
std::vector<Assignment> middle_values(const Scenario& scenario, const Point& point);

}  // namespace stepcast
