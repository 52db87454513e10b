#include "scenarios/reader/read_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/fields.hpp"
#include "core/text.hpp"
#include "scenarios/keys/scenario_keys.hpp"

namespace stepcast {
namespace {

/// A number and its unit, such as 1.5 and " us".
struct Measure {
  double number;
  std::string unit;
};

std::string advice_of_any_unit(const std::string& text) {
  for (const Dimension dimension : {Dimension::time, Dimension::bytes, Dimension::bytes_per_second,
                                    Dimension::flops, Dimension::flops_per_second}) {
    if (std::string advice = quantity_advice(text, dimension); !advice.empty()) return advice;
  }
  return "";
}

Measure measure_of(const YamlValue& value) {
  const std::string text = value.text();
  const auto space = text.find(' ');
  const auto number = parse_number(text.substr(0, space));
  if (!number)
    value.refuse(fmt::format("expected a number, or a number and a unit, got \"{}\"{}", printable(text),
                             advice_of_any_unit(text)));
  return {*number, space == std::string::npos ? "" : text.substr(space)};
}

std::string text_of(const Measure& one) {
  return fmt::format("{}{}", one.number, one.unit);
}

/// The value in the unit of the other one: [0 s, 5 ms] are [0 ms, 5 ms].
Measure in_unit_of(const Measure& other, const Measure& value, const YamlValue& ends) {
  if (!value.unit.empty() && !other.unit.empty()) {
    const auto ratio = unit_ratio(value.unit.substr(1), other.unit.substr(1));
    if (ratio) return {value.number * *ratio, other.unit};
  }
  ends.refuse(fmt::format("expected two values of one kind, such as [0 s, 5 ms], got {} and {}",
                          text_of(value), text_of(other)));
}

void read_range(const YamlValue& ends, Assumption& range) {
  if (!ends.is(YamlNode::Kind::sequence) || ends.list().size() != 2)
    ends.expected("two values, [low, high], such as [0 s, 5 ms]");
  const auto list = ends.list();
  Measure low = measure_of(list[0]);
  const Measure high = measure_of(list[1]);
  if (low.unit != high.unit) low = in_unit_of(high, low, ends);
  if (!(low.number < high.number))
    ends.refuse(fmt::format("expected the lower value first, got {} and {}", text_of(measure_of(list[0])),
                            text_of(high)));
  range.low = low.number;
  range.high = high.number;
  range.unit = low.unit;
}

void read_choices(const YamlValue& choices, Assumption& assumption) {
  for (const YamlValue& one : choices.list()) {
    if (!one.is(YamlNode::Kind::scalar)) one.expected("a value, such as true or ring");
    assumption.choices.push_back(one.node());
  }
  if (assumption.choices.size() < 2 || assumption.choices.size() > kMostEntries)
    choices.expected("two or more values");
  assumption.high = assumption.choices.size();
}

Field<Assumption> key_field(std::string_view otherwise, std::string_view meaning) {
  const auto read = [](const YamlValue& value, Assumption& range) {
    range.key = value.text();
    range.place = value.node().place;
  };
  return field<Assumption>({"key", KeyType::text, otherwise, meaning}, read, "the key of an uncertain input");
}

void check_assumption(const YamlMap& map, Assumption& one) {
  if (one.choices.empty()) {
    map.at("range", "[low, high]");
  } else {
    for (const char* other : {"range", "law"})
      if (const auto given = map.maybe(other)) given->refuse("not valid with choices");
  }
  if (one.logarithmic && one.low <= 0)
    map.at("range").refuse(fmt::format("expected values > 0 for log-uniform, got {}{} and {}{}", one.low,
                                       one.unit, one.high, one.unit));
}

const Fields<Assumption>& assumption_fields() {
  static const Fields<Assumption> fields{
      {key_field("required", "path of the input"),
       field<Assumption>({"range", KeyType::list, "required without `choices`",
                          "`[low, high]`, the lower first, of one kind: `[0 s, 5 ms]`; above 0 for "
                          "`log-uniform`"},
                         read_range),
       field<Assumption>({"choices", KeyType::values, "none",
                          "in place of `range`: equally likely values, such as `[true, false]`"},
                         read_choices),
       field("law", &Assumption::logarithmic, choice<bool>({{"uniform", false}, {"log-uniform", true}}),
             "distribution of the draws"),
       field("why", &Assumption::why, text(), required("the reason for this range"), "reason for the range")},
      check_assumption};
  return fields;
}

/// The unit of a column, by a word in its name.
struct ColumnUnit {
  std::string_view word;  ///< word in the name of the column
  Dimension dimension;
  double size;  ///< size of the unit in SI units
};

std::optional<ColumnUnit> unit_of(const std::string& column) {
  static constexpr std::array<ColumnUnit, 4> kUnits{{{"_seconds_", Dimension::time, 1},
                                                     {"_minutes_", Dimension::time, 60},
                                                     {"_hours_", Dimension::time, 3600},
                                                     {"_bytes_", Dimension::bytes, 1}}};
  const std::string words = "_" + column + "_";
  for (const ColumnUnit& unit : kUnits) {
    if (words.find(unit.word) != std::string::npos) return unit;
  }
  return std::nullopt;
}

/// Reads a figure, "0.2318 s" or a plain number, in the unit of its column. A ratio of two points has no
/// unit.
double figure_of(const YamlValue& value, const std::string& column, bool ratio) {
  const std::string text = value.text();
  if (const auto number = parse_number(text)) return *number;
  if (ratio) value.expected("a number, because it is the ratio of two points");
  const auto unit = unit_of(column);
  if (!unit) value.expected("a number, because the unit of column " + printable(column) + " is unknown");
  if (const auto number = parse_quantity(text, unit->dimension)) return *number / unit->size;
  value.refuse(fmt::format("expected a number, or one with a unit of {}, got \"{}\"{}",
                           unit->dimension == Dimension::time ? "time" : "bytes", printable(text),
                           quantity_advice(text, unit->dimension)));
}

constexpr auto kColumn =
    "a column of `results.csv` that is computed from one point alone, so not `speedup` or `efficiency`";

/// `value`, whose unit depends on `column`: the reader reads it after the other keys.
template <class T>
Field<T> figure_field(std::string_view otherwise, std::string_view meaning) {
  return field<T>({"value", KeyType::value, otherwise, meaning});
}

void check_measurement(const YamlMap& map, Measurement& one) {
  if (!one.range.key.empty()) {
    map.at("range", "[low, high]");
    map.at("source", "where the figure is from");
    if (const auto given = map.maybe("spread")) given->refuse("not valid with key, which is fitted exactly");
    return;
  }
  for (const char* other : {"range", "over"})
    if (const auto given = map.maybe(other)) given->refuse("only valid with key, an input that is fitted");
}

const Fields<Measurement>& measurement_fields() {
  static const Fields<Measurement> fields{
      {field(
           "point", &Measurement::point, point_values(), required("the values of one point"),
           "the point that was measured; it is added to the sweep if that has no such point and no `key` is "
           "fitted"),
       field("column", &Measurement::column, text(), required("a column of results.csv"), kColumn),
       figure_field<Measurement>("required",
                                 "the measurement, a number with or without unit; a plain number is in the "
                                 "column's unit"),
       field("spread", &Measurement::spread, number(0, 1), otherwise("0.005"),
             "standard deviation of the value, relative to it"),
       field("source", &Measurement::source, text(), otherwise("none; required with `key`"),
             "origin of the measurement"),
       part(&Measurement::range,
            key_field("none", "path of an input that is fitted to this figure in every draw")),
       part(&Measurement::range,
            field<Assumption>({"range", KeyType::list, "required with `key`", "`[low, high]` of the fit"},
                              read_range)),
       field("over", &Measurement::over, point_values(),
             "with `key`, a second point: `value` is then the ratio of both points, for example a published "
             "speed-up")},
      check_measurement};
  return fields;
}

const Fields<Published>& published_fields() {
  static const Fields<Published> fields{
      field("point", &Published::point, point_values(), required("the values of one point"),
            "the point of the sweep that has all of these values, and the fewest others"),
      field("over", &Published::over, point_values(), otherwise("none; required for `trend`"),
            "a second point: the figure is the ratio of both"),
      field("column", &Published::column, text(), required("a column of results.csv"),
            "a column of `results.csv` with numbers"),
      field("kind", &Published::kind, one_of({"predicted", "fitted", "bound", "trend"}),
            required("predicted, fitted, bound or trend"), "how the figure is compared"),
      field<Published>({"relation", one_of({"at_most", "at_least", "less_than", "more_than"}),
                        "required for `bound` and `trend`",
                        "a bound is `at_most` or `at_least`; a trend is `less_than` or `more_than` the point "
                        "`over`"}),
      figure_field<Published>("required, except for `trend`",
                              "a number in the column's own unit (`172` of `sweep_minutes`) or with a unit "
                              "(`172 min`); a ratio has no unit"),
      field("tolerance", &Published::tolerance, number(0, 10),
            "allowed deviation of a bound or a fitted figure, and of a predicted figure without interval"),
      field("source", &Published::source, text(), required("where the figure is from"),
            "origin of the figure"),
      field("counted", &Published::counted, boolean(),
            "`false`: another entry states the same figure in another column, so that this one is not "
            "counted"),
      field("tuned", &Published::tuned, text(),
            "what was changed after the first result had been seen; without this key, the forecast is "
            "blind")};
  return fields;
}

}  // namespace

std::string range_text(const Assumption& one) {
  if (one.choices.empty())
    return fmt::format("{}{} to {}{}{}{}", one.low, one.unit, one.high, one.unit,
                       one.logarithmic ? ", log-uniform" : "",
                       one.middle ? fmt::format(", half of it below {}", *one.middle) : "");
  std::string text;
  for (const YamlNode& choice : one.choices) text += (text.empty() ? "one of " : ", ") + choice.text;
  return text;
}

namespace {

double value_between(double low, double high, double u, bool logarithmic) {
  return logarithmic ? low * std::pow(high / low, u) : low + u * (high - low);
}

double value_at(const Assumption& one, double u) {
  if (!one.middle) return value_between(one.low, one.high, u, one.logarithmic);
  return u < 0.5 ? value_between(one.low, *one.middle, 2 * u, one.logarithmic)
                 : value_between(*one.middle, one.high, 2 * u - 1, one.logarithmic);
}

}  // namespace

Assignment assumed_value(const Assumption& assumption, double u) {
  if (!assumption.choices.empty()) {
    const auto count = assumption.choices.size();
    const auto chosen = std::min<std::size_t>(u * count, count - 1);
    return {assumption.key, assumption.choices[chosen]};
  }
  Assignment assignment{assumption.key, {}};
  assignment.value.kind = YamlNode::Kind::scalar;
  assignment.value.text = fmt::format("{}{}", value_at(assumption, u), assumption.unit);
  assignment.value.place = assumption.place;
  return assignment;
}

std::vector<Assignment> read_point(const YamlValue& value, Null null) {
  const auto entries = value.any_map().entries();
  if (entries.size() > kMostEntries) value.refuse(fmt::format("more than {} values", kMostEntries));
  std::vector<Assignment> values;
  for (const auto& [key, one] : entries) {
    if (one.is(YamlNode::Kind::nothing) && null == Null::refused) one.expected("a value");
    values.push_back({key, one.node()});
  }
  return values;
}

Form<std::vector<Assignment>> point_values() {
  return {KeyType::settings, [](const YamlValue& value) { return read_point(value); },
          [](const auto&) { return "none"; }};
}

const Keys& assumed_keys() {
  return assumption_fields().keys();
}

const Keys& measured_keys() {
  return measurement_fields().keys();
}

const Keys& published_keys() {
  return published_fields().keys();
}

Assumption read_assumption(const YamlValue& value) {
  Assumption assumption;
  read_mapping(value, assumption_fields(), assumption);
  return assumption;
}

Measurement read_calibration(const YamlValue& value) {
  value.any_map().at("key", "the key of an uncertain input");
  return read_measurement(value);
}

Measurement read_measurement(const YamlValue& value) {
  Measurement measured;
  const YamlMap map = read_mapping(value, measurement_fields(), measured);
  const bool fitted = !measured.range.key.empty();
  const YamlValue figure = map.at("value", fitted ? "the figure to fit" : "the measurement");
  measured.value = figure_of(figure, measured.column, !measured.over.empty());
  if (!fitted && measured.value <= 0) figure.expected("a value above 0");
  return measured;
}

namespace {

/// The relation of a bound or a trend, each of which has words of its own.
std::string read_relation(const YamlMap& map, const std::string& kind) {
  if (kind == "bound") return one_of({"at_most", "at_least"}).read(map.at("relation", "at_most or at_least"));
  if (kind == "trend")
    return one_of({"less_than", "more_than"})
        .read(map.at("relation", "less_than or more_than, of the point `over`"));
  if (const auto relation = map.maybe("relation")) relation->refuse("only valid with kind: bound or trend");
  return "";
}

}  // namespace

Published read_published(const YamlValue& value) {
  Published published;
  const YamlMap map = read_mapping(value, published_fields(), published);
  published.relation = read_relation(map, published.kind);
  if (published.kind == "trend") {
    map.at("over", "the point that it is compared with");
    if (const auto figure = map.maybe("value")) figure->refuse("a trend has no value, only a relation");
  } else {
    published.value =
        figure_of(map.at("value", "the published figure"), published.column, !published.over.empty());
  }
  return published;
}

}  // namespace stepcast
