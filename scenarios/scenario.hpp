#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "scenarios/assignment.hpp"

namespace stepcast {

/// One point of the sweep: the values that it sets, in the order of the file.
struct Point {
  std::string name;  ///< "workers=8, strategy.all_reduce=ring"; the scenario's name without a sweep
  std::vector<Assignment> values;
};

/// An input that is not known: any value of the range, by the law.
struct Assumption {
  std::string key;
  double low = 0, high = 0;  ///< in the unit of the text
  std::string unit;          ///< " us", or nothing for a plain number
  bool logarithmic = false;
  std::string why;
  Place place;
};

/// The value of an assumption for `u` in [0, 1): what the scenario gets to read.
Assignment assumed_value(const Assumption& assumption, double u);

/// A figure that is fed in: `key` is set so that `column` of the point, or its ratio to that of `over`,
/// becomes `value`.
struct Feed {
  Assumption range;  ///< bracket in which the key is searched, and its key; law and reason unused
  std::vector<Assignment> point;
  std::vector<Assignment> over;  ///< empty: no ratio
  std::string column;
  double value = 0;
  std::string source;
};

/// A published figure: of a point, or the ratio of two points.
struct Published {
  std::vector<Assignment> point;
  std::vector<Assignment> over;  ///< the figure is column(point) / column(over); empty: no ratio
  std::string column;
  std::string kind;      ///< predicted | fitted | bound | trend
  std::string relation;  ///< bound: at_most | at_least; trend: less_than | more_than `over`
  double value = 0;
  std::optional<double> tolerance;
  std::string source;
};

/// A scenario file, its sweep taken apart. `document` keeps the keys that describe one run; what is not known
/// there is found when an experiment is built from it.
struct Scenario {
  std::filesystem::path file;
  std::string name, description;
  YamlNode document;
  std::vector<Assignment> settings;  ///< `set:` and `--set`, for every point
  std::vector<std::string> sweep_keys;
  std::vector<Point> points;
  std::vector<Assumption> assumptions;
  std::vector<Feed> calibrations;
  std::vector<Published> published;
};

/// Reads a scenario; `settings` (`--set`) replace its values before anything else. Throws InputError;
/// LimitError for a sweep of more than 100,000 points.
Scenario read_scenario(const std::filesystem::path& file, const std::vector<Assignment>& settings);

/// The values that point `point` sets in draw `inputs`: settings, point, assumptions, calibrated keys.
std::vector<Assignment> values_of(const Scenario& scenario, const std::vector<Assignment>& point,
                                  const std::vector<double>& inputs, const std::vector<double>& calibrated);

/// The same in the middle of every assumption and of every bracket of a calibration: what is checked first.
std::vector<Assignment> middle_values(const Scenario& scenario, const Point& point);

}  // namespace stepcast
