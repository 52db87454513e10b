#include "scenarios/keys/scenario_keys.hpp"

namespace stepcast {
namespace {

constexpr auto kPoint = "mapping of values";

Key range_key(const std::string& default_value, const std::string& meaning) {
  return {"range", "list", "", default_value, meaning};
}

}  // namespace

const Keys& range_keys() {
  static const Keys keys{{"from", "integer", "0 to 1e9", "required", "first value; at least 1 with `times`"},
                         {"to", "integer", "0 to 1e9", "required", "the values end here"},
                         {"times", "integer", "2 to 1e6", "none", "factor from one value to the next"},
                         {"step", "integer", "1 to 1e9", "none", "difference from one value to the next"}};
  return keys;
}

const Keys& assumed_keys() {
  static const Keys keys{
      {"key", "text", "", "required", "path of the input"},
      range_key("required without `choices`",
                "`[low, high]`, the lower first, of one kind: `[0 s, 5 ms]`; above 0 for `log-uniform`"),
      {"choices", "list of values", "", "none",
       "in place of `range`: equally likely values, such as `[true, false]`"},
      {"law", "name", "uniform, log-uniform", "uniform", "distribution of the draws"},
      {"why", "text", "", "required", "reason for the range"}};
  return keys;
}

const Keys& calibrate_keys() {
  static const Keys keys{
      {"key", "text", "", "required", "path of the input that is fitted"},
      range_key("required", "`[low, high]` of the fit"),
      {"point", kPoint, "", "required",
       "the point that the figure belongs to; it need not be a point of the sweep"},
      {"over", kPoint, "", "none",
       "a second point: `value` is then the ratio of both points, for example a published speed-up"},
      {"column", "text", "", "required",
       "a column of `results.csv` that one point has by itself, so not `speedup` or `efficiency`"},
      {"value", "value", "", "required",
       "the figure, a number with or without unit; a plain number is in the column's unit"},
      {"source", "text", "", "required", "origin of the figure"}};
  return keys;
}

const Keys& published_keys() {
  static const Keys keys{
      {"point", kPoint, "", "required", "the first point of the sweep that has all of these values"},
      {"over", kPoint, "", "none; required for `trend`", "a second point: the figure is the ratio of both"},
      {"column", "text", "", "required", "a column of `results.csv` with numbers"},
      {"kind", "name", "predicted, fitted, bound, trend", "required", "how the figure is compared"},
      {"relation", "name", "at_most, at_least, less_than, more_than", "required for `bound` and `trend`",
       "a bound is `at_most` or `at_least`; a trend is `less_than` or `more_than` the point `over`"},
      {"value", "value", "", "required, except for `trend`",
       "a number in the column's own unit (`172` of `sweep_minutes`) or with a unit (`172 min`); a ratio has "
       "no unit"},
      {"tolerance", "number", "0 to 10", "none",
       "allowed deviation of a bound or a fitted figure, and of a predicted figure without interval"},
      {"source", "text", "", "required", "origin of the figure"},
      {"counted", "boolean", "", "true",
       "`false`: another entry states the same figure in another column, so that this one is not counted"},
      {"tuned", "text", "", "none",
       "what was changed after a look at the first result; without it, the forecast is blind"}};
  return keys;
}

const Keys& whole_scenario_keys() {
  static const Keys keys{
      {"name", "text", "", "required",
       "name of the scenario and of its results folder: small letters, digits, `-`, `_`"},
      {"description", "text", "", "empty", "printed by `show scenario`"},
      {"defaults", "path", "", "none", "a scenario whose keys count where this file does not give them"},
      {"sweep", "sweep", "", "none", "values that vary from point to point"},
      {"set", kPoint, "", "none", "values that hold for every point"},
      {"assumed", "list of mappings", "", "none", "ranges of inputs that are not known", assumed_keys},
      {"calibrate", "list of mappings", "", "none", "inputs that are fitted to a published figure",
       calibrate_keys},
      {"published", "list of mappings", "", "none", "published figures to compare with", published_keys},
      {"framework", "name", "mxnet, oneflow, paddlepaddle, pytorch, tensorflow",
       "that of the stack in `strategy.like`", "framework that trains: sets how far intervals reach"},
      {"uncertainty", "name, boolean or mapping of values", "default, none, off", "default",
       "what intervals cover beside `assumed`: all, nothing, or a class for each kind of input"}};
  return keys;
}

const Keys& scenario_keys() {
  static const Keys keys = joined_keys({whole_scenario_keys(), run_keys()});
  return keys;
}

}  // namespace stepcast
