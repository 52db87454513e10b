#pragma once

#include <optional>
#include <string>
#include <vector>

#include "scenarios/reader/sweep.hpp"

namespace stepcast {

template <class V>
struct Form;  // core/fields.hpp

/// An uncertain input: a value of the range, distributed by the law.
struct Assumption {
  std::string key;
  double low = 0, high = 0;  ///< ends of the range, in `unit`; of choices: 0 and their number
  std::string unit;          ///< " us", or empty for a plain number
  bool logarithmic = false;
  std::optional<double> middle = {};  ///< has half of the draws below it; none: the middle of the range
  std::string why;
  Place place;
  std::vector<YamlNode> choices = {};  ///< equally likely values; empty: a range
  bool by_default = false;             ///< a default range, which the scenario does not state
};

/// "[1 us, 4 us], log-uniform", or "one of true, false"
std::string range_text(const Assumption& assumption);

/// The value of an assumption at `u` in [0, 1), as an assignment to the scenario.
Assignment assumed_value(const Assumption& assumption, double u);

/// A measured figure of a point, from which the forecasts of all points learn: it weighs the draws, or, with
/// a key, the key is fitted in every draw, so that the forecast of the figure is the figure.
struct Measurement {
  std::vector<Assignment> point;
  std::vector<Assignment> over = {};  ///< with a key: the figure is the ratio to this point; empty: no ratio
  std::string column;
  double value = 0;
  double spread =
      0;  ///< standard deviation, relative to the value; 0: as runs repeat (forecast/posterior.hpp)
  std::string source = {};
  double guess = 0;       ///< of the fitted value, from which the search starts; 0: none
  Assumption range = {};  ///< the fitted key and the bracket of its value, without law and reason; or no key
};

/// A published figure of a point, or the published ratio of two points.
struct Published {
  std::vector<Assignment> point;
  std::vector<Assignment> over;  ///< the figure is column(point) / column(over); empty: no ratio
  std::string column;
  std::string kind;      ///< predicted | fitted | bound | trend
  std::string relation;  ///< bound: at_most | at_least; trend: less_than | more_than `over`
  double value = 0;
  std::optional<double> tolerance;
  std::string source;
  bool counted = true;  ///< false: another entry states the same figure, in another column
  std::string tuned;    ///< what was changed after a look at the first result; empty: blind
};

/// Greatest number of settings, of assumptions, of calibrations and of published figures in a scenario.
constexpr std::size_t kMostEntries = 1000;

// Readers of `assumed:`, `calibrate:`, `measured:` and `published:`. All throw InputError.
Assumption read_assumption(const YamlValue& value);
Measurement read_calibration(const YamlValue& value);  ///< a measurement with a key
Measurement read_measurement(const YamlValue& value);
Published read_published(const YamlValue& value);

enum class Null { refused, removes_key };

/// Reads values by key: those of a point, or of `set:`, where null removes a key.
std::vector<Assignment> read_point(const YamlValue& value, Null null = Null::refused);

/// The form of a point's values by key.
Form<std::vector<Assignment>> point_values();

}  // namespace stepcast
