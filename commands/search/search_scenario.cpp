#include "commands/search/search_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "commands/fingerprint.hpp"
#include "commands/learn/learning_points.hpp"
#include "core/error.hpp"
#include "forecast/fit_calibration.hpp"
#include "forecast/journal.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/resource_limits.hpp"
#include "forecast/simulate_point.hpp"
#include "report/results/results_text.hpp"
#include "report/statistics/statistics.hpp"
#include "scenarios/reader/sweep.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {

namespace {

const Point& chosen_point(const Scenario& scenario, const std::string& name) {
  if (name.empty()) return scenario.points.back();
  for (const Point& point : scenario.points) {
    if (point.name == name) return point;
  }
  throw InputError(fmt::format("--point: expected a point of the sweep, such as \"{}\", got \"{}\"",
                               scenario.points.back().name, name));
}

bool is_searched(const std::vector<SearchKey>& keys, const std::string& path) {
  return std::any_of(keys.begin(), keys.end(),
                     [&](const SearchKey& key) { return key.parameter.name == path; });
}

Experiment experiment_of(const SearchedScenario& searched, const std::vector<Assignment>& chosen,
                         Library& library) {
  std::vector<Assignment> values = searched.common;
  values.insert(values.end(), chosen.begin(), chosen.end());
  return build_experiment(searched.scenario.document, values, library);
}

/// Reads every file and builds one experiment: the unchanged scenario, or if that is invalid, the middle of
/// every range.
void check(const SearchedScenario& searched, Library& library) {
  try {
    experiment_of(searched, {}, library);
  } catch (const InputError&) {
    Values middle;
    for (const SearchKey& key : searched.keys) middle.push_back(value_at(key.parameter, 0.5));
    experiment_of(searched, search_values(searched.keys, middle), library);
  }
}

Row row_of(const std::string& text) {
  Row row = read_json_lines(text + "\n", "simulation").rows.at(0);
  std::erase_if(row.cells, [](const auto& cell) { return cell.first == "scenario"; });
  return row;
}

}  // namespace

SearchedScenario read_searched_scenario(const SearchCommand& command, Library& library) {
  std::vector<Assignment> settings;
  for (const std::string& text : command.settings) settings.push_back(parse_assignment(text));
  SearchedScenario searched;
  Scenario& scenario = searched.scenario;
  scenario = read_scenario(command.scenario, settings);
  searched.keys = read_search_keys(command.over, scenario);
  std::vector<Assignment> fixed;
  for (const Assignment& one : chosen_point(scenario, command.point).values) {
    if (!is_searched(searched.keys, one.path)) fixed.push_back(one);
  }
  searched.point = point_name(fixed);
  const std::vector<double> middle(scenario.assumptions.size(), 0.5);
  std::vector<double> calibrated;
  if (!scenario.calibrations.empty()) calibrated = calibrated_draw(scenario, middle, library).values;
  searched.common = values_of(scenario, fixed, middle, calibrated);
  check(searched, library);
  return searched;
}

std::string fingerprint_of(const SearchedScenario& searched, const Library& library,
                           const SearchCommand& command) {
  std::vector<std::string> texts = command.settings;
  texts.push_back(searched.point);
  for (const SearchKey& key : searched.keys) texts.push_back(key.parameter.name);
  return fingerprint_of(input_files(searched.scenario, library), texts);
}

SearchSimulator::SearchSimulator(const SearchedScenario& searched, Library& library,
                                 const SearchCommand& command)
    : searched_(searched),
      library_(library),
      progress_(static_cast<std::size_t>(command.evaluations), "evaluations") {
  limits_.processes = command.processes;
  limits_.memory_limit = command.memory_limit;
  limits_.time_limit = command.time_limit;
}

Row SearchSimulator::simulated(const std::vector<Assignment>& chosen) const {
  try {
    const Experiment experiment = experiment_of(searched_, chosen, library_);
    const RunSize size = run_size(experiment, 1, 1);
    check_limits(size, limits_);
    check_time(experiment, size, limits_);
    return simulate_point(experiment, Doubled::none);
  } catch (const InputError& error) {
    return failed_row(error.what());
  } catch (const LimitError& error) {
    return failed_row(error.what());
  }
}

std::map<std::string, Row> SearchSimulator::operator()(const std::map<std::string, Values>& settings) {
  std::vector<Task> tasks;
  std::vector<std::string> names;
  for (const auto& [name, values] : settings) {
    names.push_back(name);
    tasks.push_back([this, chosen = search_values(searched_.keys, values)] {
      return to_json_line({}, simulated(chosen));
    });
  }
  std::map<std::string, Row> rows;
  run_tasks(tasks, limits_.processes, [&](std::size_t task, const std::string& text) {
    rows[names[task]] = row_of(text);
    progress_.one_done();
  });
  return rows;
}

Row SearchSimulator::as_written() {
  Row row;
  const std::vector<Task> tasks{[this] { return to_json_line({}, simulated({})); }};
  run_tasks(tasks, 1, [&](std::size_t, const std::string& text) { row = row_of(text); });
  return row;
}

namespace {

constexpr std::array kLearnedColumns{"loss", "accuracy", "seconds_to_target", "samples_to_target"};

double quantity(const LearnedRun& run, const std::string& column) {
  constexpr double kNever = HUGE_VAL;
  if (column == "accuracy") return run.accuracy.value_or(0);
  if (column == "seconds_to_target") return run.seconds_to_target.value_or(kNever);
  if (column == "samples_to_target") return run.samples_to_target.value_or(kNever);
  return std::isfinite(run.loss) ? run.loss : kNever;
}

/// Medians over the trainings of one point. A median that is not finite has no cell.
Row row_of(const std::vector<LearnedRun>& runs) {
  Row row;
  for (const char* column : kLearnedColumns) {
    std::vector<double> values;
    for (const LearnedRun& run : runs) values.push_back(quantity(run, column));
    if (const double median = median_of(values); std::isfinite(median)) row.set(column, median);
  }
  row.set("seconds", runs.front().seconds);
  row.set("samples_per_second", runs.front().seconds > 0 ? runs.front().samples / runs.front().seconds : 0);
  row.set("seeds", static_cast<std::int64_t>(runs.size()));
  return row;
}

}  // namespace

bool is_learned_column(const std::string& column) {
  return std::ranges::find(kLearnedColumns, column) != kLearnedColumns.end();
}

SearchLearner::SearchLearner(const SearchedScenario& searched, const SearchCommand& command,
                             std::filesystem::path folder)
    : searched_(searched), command_(command), folder_(std::move(folder)) {
  const YamlMap learning = YamlValue(searched.scenario.document, "").any_map();
  const auto found = learning.maybe("learning");
  if (!found)
    throw InputError(fmt::format("{}: learning: searching for the column {} needs this key",
                                 searched.scenario.file.string(), command.column));
  if (command.column.ends_with("_to_target") && !found->any_map().has("target_loss"))
    found->refuse(fmt::format("searching for the column {} needs target_loss", command.column));
}

std::map<std::string, Row> SearchLearner::learned(const std::vector<Point>& points) {
  std::map<std::string, Row> rows;
  std::vector<LearningRun> runs;
  Scenario one = searched_.scenario;
  one.settings.clear();  // the points have them, and a key can be removed only once
  for (const Point& point : points) {
    one.points = {point};
    try {
      std::ranges::move(learning_runs(one), std::back_inserter(runs));
    } catch (const InputError& error) {
      rows[point.name].set("failed", std::string(error.what()));
    }
  }
  if (runs.empty()) return rows;
  const double target = runs.front().experiment.learning->target_loss.value_or(0);
  std::map<std::string, std::vector<LearnedRun>> by_point;
  const LearningJob job{.scenario = one, .folder = folder_, .processes = command_.processes};
  for (LearnedRun& run : learned_runs(trained(job, std::move(runs)), target))
    by_point[run.point].push_back(std::move(run));
  for (const auto& [name, of_point] : by_point) rows[name] = row_of(of_point);
  return rows;
}

std::map<std::string, Row> SearchLearner::operator()(const std::map<std::string, Values>& settings) {
  std::vector<Point> points;
  for (const auto& [name, values] : settings) {
    Point& point = points.emplace_back(Point{name, searched_.common});
    std::ranges::move(search_values(searched_.keys, values), std::back_inserter(point.values));
  }
  return learned(points);
}

Row SearchLearner::as_written() {
  constexpr const char* kName = "as written";
  return learned({{kName, searched_.common}})[kName];
}

}  // namespace stepcast
