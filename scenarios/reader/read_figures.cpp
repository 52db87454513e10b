#include "scenarios/reader/read_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

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

Assumption read_range(const YamlMap& map) {
  Assumption range;
  range.key = map.at("key", "the key of an uncertain input").text();
  range.place = map.at("key").node().place;
  const YamlValue ends = map.at("range", "[low, high]");
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
  return range;
}

Assumption read_choices(const YamlMap& map) {
  for (const char* other : {"range", "law"}) {
    if (const auto given = map.maybe(other)) given->refuse("not valid with choices");
  }
  Assumption assumption;
  assumption.key = map.at("key", "the key of an uncertain input").text();
  assumption.place = map.at("key").node().place;
  const YamlValue choices = map.at("choices");
  for (const YamlValue& one : choices.list()) {
    if (!one.is(YamlNode::Kind::scalar)) one.expected("a value, such as true or ring");
    assumption.choices.push_back(one.node());
  }
  if (assumption.choices.size() < 2 || assumption.choices.size() > kMostEntries)
    choices.expected("two or more values");
  assumption.high = static_cast<double>(assumption.choices.size());
  return assumption;
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

}  // namespace

std::string range_text(const Assumption& one) {
  if (one.choices.empty())
    return fmt::format("{}{} to {}{}{}", one.low, one.unit, one.high, one.unit,
                       one.logarithmic ? ", log-uniform" : "");
  std::string text;
  for (const YamlNode& choice : one.choices) text += (text.empty() ? "one of " : ", ") + choice.text;
  return text;
}

Assignment assumed_value(const Assumption& assumption, double u) {
  if (!assumption.choices.empty()) {
    const auto count = assumption.choices.size();
    const auto chosen = std::min(static_cast<std::size_t>(u * static_cast<double>(count)), count - 1);
    return {assumption.key, assumption.choices[chosen]};
  }
  const double value = assumption.logarithmic ? assumption.low * std::pow(assumption.high / assumption.low, u)
                                              : assumption.low + u * (assumption.high - assumption.low);
  Assignment assignment{assumption.key, {}};
  assignment.value.kind = YamlNode::Kind::scalar;
  assignment.value.text = fmt::format("{}{}", value, assumption.unit);
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

Assumption read_assumption(const YamlValue& value) {
  const YamlMap map = read_map(value, assumed_keys());
  Assumption assumption = map.has("choices") ? read_choices(map) : read_range(map);
  if (const auto law = map.maybe("law")) {
    assumption.logarithmic = law->one_of({"uniform", "log-uniform"}) == 1;
    if (assumption.logarithmic && assumption.low <= 0)
      map.at("range").refuse(fmt::format("expected values > 0 for log-uniform, got {}{} and {}{}",
                                         assumption.low, assumption.unit, assumption.high, assumption.unit));
  }
  assumption.why = map.at("why", "the reason for this range").text();
  return assumption;
}

CalibrationTarget read_calibration_target(const YamlValue& value) {
  const YamlMap map = read_map(value, calibrate_keys());
  CalibrationTarget target;
  target.range = read_range(map);
  target.point = read_point(map.at("point", "the values of one point"));
  if (const auto over = map.maybe("over")) target.over = read_point(*over);
  target.column = map.at("column", "a column of results.csv").text();
  target.value = figure_of(map.at("value", "the figure to fit"), target.column, !target.over.empty());
  target.source = map.at("source", "where the figure is from").text();
  return target;
}

Measurement read_measurement(const YamlValue& value) {
  const YamlMap map = read_map(value, measured_keys());
  Measurement measured;
  measured.point = read_point(map.at("point", "the values of one point"));
  measured.column = map.at("column", "a column of results.csv").text();
  const YamlValue figure = map.at("value", "the measurement");
  measured.value = figure_of(figure, measured.column, false);
  if (measured.value <= 0) figure.expected("a value above 0");
  if (const auto spread = map.maybe("spread")) measured.spread = spread->number(0, 1);
  if (const auto source = map.maybe("source")) measured.source = source->text();
  return measured;
}

Published read_published(const YamlValue& value) {
  const YamlMap map = read_map(value, published_keys());
  Published published;
  published.point = read_point(map.at("point", "the values of one point"));
  if (const auto over = map.maybe("over")) published.over = read_point(*over);
  published.column = map.at("column", "a column of results.csv").text();
  const std::vector<std::string> kinds{"predicted", "fitted", "bound", "trend"};
  published.kind = kinds[map.at("kind", "predicted, fitted, bound or trend").one_of(kinds)];
  const bool related = published.kind == "bound" || published.kind == "trend";
  if (const auto relation = map.maybe("relation"); relation && !related)
    relation->refuse("only valid with kind: bound or trend");
  if (published.kind == "bound") {
    const std::vector<std::string> relations{"at_most", "at_least"};
    published.relation = relations[map.at("relation", "at_most or at_least").one_of(relations)];
  }
  if (published.kind == "trend") {
    const std::vector<std::string> relations{"less_than", "more_than"};
    published.relation =
        relations[map.at("relation", "less_than or more_than, of the point `over`").one_of(relations)];
    if (published.over.empty()) map.at("over", "the point that it is compared with");
    if (const auto figure = map.maybe("value")) figure->refuse("a trend has no value, only a relation");
  } else {
    published.value =
        figure_of(map.at("value", "the published figure"), published.column, !published.over.empty());
  }
  if (const auto tolerance = map.maybe("tolerance")) published.tolerance = tolerance->number(0, 10);
  published.source = map.at("source", "where the figure is from").text();
  if (const auto counted = map.maybe("counted")) published.counted = counted->boolean();
  if (const auto tuned = map.maybe("tuned")) published.tuned = tuned->text();
  return published;
}

}  // namespace stepcast
