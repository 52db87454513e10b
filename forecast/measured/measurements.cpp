#include "forecast/measured/measurements.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "core/error.hpp"
#include "core/text.hpp"
#include "forecast/fit_calibration.hpp"
#include "forecast/measured/measured_memory.hpp"
#include "forecast/posterior.hpp"
#include "report/results/results.hpp"
#include "report/statistics/statistics.hpp"

namespace stepcast {
namespace {

YamlNode scalar(const std::string& text, const std::filesystem::path& file) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = text;
  node.place.file = std::make_shared<const std::string>(file.string());
  return node;
}

bool belongs_to_point(const Scenario& scenario, const std::string& column) {
  return column == "workers" || column.find('.') != std::string::npos ||
         std::ranges::find(scenario.sweep_keys, column) != scenario.sweep_keys.end();
}

/// Columns of which each is a measurement of its own.
bool is_own(const std::string& column) {
  return is_part_of_step(column) || column == kMemoryColumn;
}

bool follows_from_step(const std::string& column) {
  const StepRelation relation = relation_to_step(column);
  return relation == StepRelation::time || relation == StepRelation::rate;
}

/// The number of a column; nothing for an empty cell.
std::optional<double> number_in(const Row& row, const std::string& column,
                                const std::filesystem::path& file) {
  const auto value = row.number(column);
  const std::string text = row.text(column);
  if (text.empty() || (value && (*value > 0 || (is_part_of_step(column) && *value == 0)))) return value;
  throw InputError(fmt::format("{}: {}: expected numbers above 0, without a unit, got \"{}\"", file.string(),
                               column, printable(text)));
}

/// The measurements of one run.
std::vector<Measurement> of_row(const Row& row, const Scenario& scenario, const std::filesystem::path& file) {
  Measurement common;
  for (const auto& [column, cell] : row.cells) {
    if (belongs_to_point(scenario, column)) common.point.push_back({column, scalar(to_text(cell), file)});
  }
  const auto named = std::ranges::find(scenario.points, row.text("point"), &Point::name);
  if (common.point.empty() && named != scenario.points.end()) common.point = named->values;
  common.range.place.file = std::make_shared<const std::string>(file.string());
  common.spread = row.number("spread").value_or(0);
  if (common.spread < 0 || common.spread > 1)
    throw InputError(
        fmt::format("{}: spread: expected a number from 0 to 1, got {}", file.string(), common.spread));
  common.source = row.text("source");
  std::vector<Measurement> measured;
  bool has_step = false;
  for (const auto& [column, cell] : row.cells) {
    const bool of_step = follows_from_step(column);
    if (of_step ? has_step : !is_own(column)) continue;
    const auto value = number_in(row, column, file);
    if (!value || (is_part_of_step(column) && *value == 0)) continue;
    has_step = has_step || of_step;
    measured.push_back(common);
    measured.back().column = column;
    measured.back().value = *value;
  }
  return measured;
}

/// Repeats of a point as one measurement: their median, and as its spread what it differs by from run to run,
/// 1.25 standard deviations of the repeats over the square root of their number, but at least kRepeatability.
Measurement median_measurement(const std::vector<Measurement>& repeats) {
  Measurement one = repeats.front();
  if (repeats.size() == 1) return one;
  std::vector<double> values;
  for (const Measurement& repeat : repeats) values.push_back(repeat.value);
  const double centre = mean(values);
  double square = 0;
  for (const double value : values) square += std::pow(value - centre, 2);
  const double count = values.size();
  one.value = median_of(values);
  const double spread = 1.2533 * std::sqrt(square / (count - 1) / count) / one.value;
  one.spread = std::max({kRepeatability, one.spread, spread});
  return one;
}

std::vector<Measurement> without_repeats(const std::vector<Measurement>& all) {
  std::vector<std::vector<Measurement>> groups;
  std::map<std::string, std::size_t> known;  // by point and column
  for (const Measurement& one : all) {
    const auto [group, is_new] = known.emplace(point_name(one.point) + " " + one.column, groups.size());
    if (is_new) groups.emplace_back();
    groups[group->second].push_back(one);
  }
  std::vector<Measurement> single;
  for (const auto& group : groups) single.push_back(median_measurement(group));
  return single;
}

bool sets_compute_factor(const Scenario& scenario) {
  const std::string key = "strategy.compute_factor";
  const auto sets = [&](const Assignment& one) { return one.path == key; };
  return find_path(scenario.document, key) != nullptr || std::ranges::any_of(scenario.settings, sets) ||
         std::ranges::any_of(scenario.assumptions, [&](const auto& one) { return one.key == key; }) ||
         std::ranges::find(scenario.sweep_keys, key) != scenario.sweep_keys.end();
}

double workers_of(const Measurement& measured) {
  for (const Assignment& one : measured.point) {
    if (one.path == "workers") return parse_number(one.value.text).value_or(1);
  }
  return 1;
}

/// Moves the measurement on the fewest devices to the calibrations, if it says something about layers.
void feed_in_smallest(Scenario& scenario, Library& library) {
  auto smallest = scenario.measurements.end();
  for (auto one = scenario.measurements.begin(); one != scenario.measurements.end(); ++one) {
    if (!follows_from_step(one->column)) continue;
    if (smallest == scenario.measurements.end() || workers_of(*one) < workers_of(*smallest)) smallest = one;
  }
  if (smallest == scenario.measurements.end()) return;
  const std::size_t point = matching_point(scenario, smallest->point).value();
  const Row results = middle_row(scenario, scenario.points[point], library);
  const double ratio = smallest->value / forecast_of(scenario, *smallest, results);
  if (is_mostly_communication(results)) return;
  smallest->range.key = "strategy.compute_factor";
  smallest->range.low = 1e-3;
  smallest->range.high = 1e3;
  const bool is_rate = relation_to_step(smallest->column) == StepRelation::rate;
  smallest->guess = std::clamp(is_rate ? 1 / ratio : ratio, smallest->range.low, smallest->range.high);
  scenario.calibrations.push_back(std::move(*smallest));
  scenario.measurements.erase(smallest);
}

void check_column(const Scenario& scenario, const Measurement& measured) {
  if (relation_to_step(measured.column) != StepRelation::ratio_of_rates) return;
  throw InputError(fmt::format("{}: measured: expected a column of one point alone, got {}",
                               place_of(scenario, measured.point), measured.column));
}

/// The value of a key at a point, as text; empty where the point does not set it.
std::string value_at(const std::vector<Assignment>& values, const std::string& key) {
  const auto found = std::ranges::find(values, key, &Assignment::path);
  return found == values.end() ? "" : point_name({*found});
}

/// Adds the values of swept keys that all points have in common, and refuses a point for which the sweep
/// leaves open what the other keys were.
void complete_point(const Scenario& scenario, Measurement& measured) {
  std::vector<std::string> open;
  for (const std::string& key : scenario.sweep_keys) {
    if (!value_at(measured.point, key).empty()) continue;
    const std::vector<Assignment>& first = scenario.points.front().values;
    const std::string common = value_at(first, key);
    const bool differs = std::ranges::any_of(
        scenario.points, [&](const Point& point) { return value_at(point.values, key) != common; });
    if (differs) open.push_back(key);
    if (!differs && !common.empty())
      measured.point.push_back(*std::ranges::find(first, key, &Assignment::path));
  }
  const auto agrees = [&](const Point& point) { return sets_all(point, measured.point); };
  const auto matches = std::ranges::count_if(scenario.points, agrees);
  const bool exact = std::ranges::any_of(scenario.points, [&](const Point& point) {
    return agrees(point) && point.values.size() == measured.point.size();
  });
  if (open.empty() || exact || matches == 1) return;
  const std::string place = measured.point.empty() && measured.range.place.file
                                ? *measured.range.place.file
                                : place_of(scenario, measured.point);
  const std::string name = measured.point.empty() ? "" : point_name(measured.point) + ": ";
  throw InputError(fmt::format("{}: measured: {}expected a value of {} too, which the sweep varies", place,
                               name, fmt::join(open, ", ")));
}

}  // namespace

std::vector<Measurement> measurements_of(const MeasuredRuns& runs, const Scenario& scenario) {
  const std::filesystem::path file = runs.file;
  std::vector<Measurement> all;
  for (const Row& row : runs.runs.rows) {
    if (row.text("kept") == "false") continue;
    const auto own = of_row(row, scenario, file);
    all.insert(all.end(), own.begin(), own.end());
  }
  all = without_repeats(all);
  if (all.empty())
    throw InputError(fmt::format(
        "{}: expected a CSV file with numbers in a column such as step_seconds, "
        "samples_per_second or memory_bytes, or the log of a trainer that `compare` reads; got {} "
        "rows with the columns {}",
        file.string(), runs.runs.rows.size(),
        printable(fmt::format("{}", fmt::join(columns(runs.runs), ", ")))));
  return all;
}

std::string unused_columns_note(const MeasuredRuns& runs, const Scenario& scenario) {
  const std::set<std::string> said{"spread", "source", "kept", "point", "scenario"};
  std::set<std::string> used;
  for (const Measurement& one : measurements_of(runs, scenario)) used.insert(one.column);
  std::vector<std::string> unused;
  for (const std::string& column : columns(runs.runs)) {
    const auto has_number = [&](const Row& row) { return row.number(column).has_value(); };
    if (used.contains(column) || said.contains(column) || belongs_to_point(scenario, column) ||
        is_part_of_step(column) || std::ranges::none_of(runs.runs.rows, has_number))
      continue;
    unused.push_back(follows_from_step(column) ? column + " (follows from the step)" : column);
  }
  if (unused.empty()) return "";
  return fmt::format("note: {}: nothing is learned from {}", runs.file, fmt::join(unused, ", "));
}

Scenario with_measured_points(Scenario scenario, Library& library) {
  for (Measurement& one : scenario.measurements) {
    check_column(scenario, one);
    complete_point(scenario, one);
  }
  for (const Measurement& one : scenario.measurements) {
    if (!matching_point(scenario, one.point)) scenario.points.push_back({point_name(one.point), one.point});
  }
  if (scenario.calibrations.empty() && !sets_compute_factor(scenario)) feed_in_smallest(scenario, library);
  return scenario;
}

}  // namespace stepcast
