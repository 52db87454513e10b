#include "commands/search/search_scenario.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <optional>
#include <span>

#include "commands/fingerprint.hpp"
#include "commands/learn/learning_points.hpp"
#include "core/error.hpp"
#include "forecast/fit_calibration.hpp"
#include "forecast/forecast.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/resource_limits.hpp"
#include "forecast/simulate_point.hpp"
#include "report/results/results.hpp"
#include "report/statistics/statistics.hpp"
#include "scenarios/reader/sweep.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {

std::vector<Assignment> joined(std::vector<Assignment> draw, const std::vector<Assignment>& chosen) {
  draw.insert(draw.end(), chosen.begin(), chosen.end());
  return draw;
}

namespace {

constexpr const char* kAsWritten = "as written";  ///< name of the unchanged scenario

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

/// The values of a setting. If it chooses the kind of strategy, the scenario's options of `strategy` that
/// this kind does not have are removed.
std::vector<Assignment> values_of_setting(const SearchedScenario& searched, const Values& values) {
  std::vector<Assignment> chosen = search_values(searched.keys, values);
  const auto kind = std::ranges::find(chosen, kStrategyKind, &Assignment::path);
  if (kind == chosen.end()) return chosen;
  YamlNode document = searched.scenario.document;
  for (const Assignment& one : searched.draws.front()) assign(document, one);
  const YamlNode* strategy = find_path(document, "strategy");
  if (strategy == nullptr) return chosen;
  std::vector<Assignment> all;
  for (const auto& [name, value] : strategy->entries) {
    const std::string path = "strategy." + name.text;
    if (!has_option(kind->value.text, path)) all.push_back(removal(path));
  }
  return joined(std::move(all), chosen);
}

ChosenSettings chosen_settings(const SearchedScenario& searched,
                               const std::map<std::string, Values>& settings) {
  ChosenSettings chosen;
  for (const auto& [name, values] : settings) chosen[name] = values_of_setting(searched, values);
  return chosen;
}

/// Reads every file and builds one experiment: the unchanged scenario, or if that is invalid, the middle of
/// every range.
void check(const SearchedScenario& searched, Library& library) {
  const YamlNode& document = searched.scenario.document;
  const std::vector<Assignment>& unchanged = searched.draws.front();
  try {
    build_experiment(document, unchanged, library);
  } catch (const InputError&) {
    Values middle;
    for (const SearchKey& key : searched.keys) middle.push_back(value_at(key.parameter, 0.5));
    build_experiment(document, joined(unchanged, values_of_setting(searched, middle)), library);
  }
}

/// The values of the point for each draw, as `run` draws them.
std::vector<std::vector<Assignment>> drawn_values(const Scenario& scenario,
                                                  const std::vector<Assignment>& point, int draws,
                                                  Library& library) {
  const std::size_t count = draw_count(scenario, draws);
  std::vector<std::vector<Assignment>> all;
  for (std::size_t draw = 0; draw < count; ++draw) {
    const std::vector<double> inputs = low_discrepancy(draw, scenario.assumptions.size());
    std::vector<double> calibrated;
    if (!scenario.calibrations.empty())
      calibrated = calibrated_draw(scenario, inputs, in_own_process(scenario, library)).values;
    all.push_back(values_of(scenario, point, inputs, calibrated));
  }
  return all;
}

/// The medians of the fractional numbers, and the other cells of the first draw; or the row of a draw that
/// failed.
Row median_row(std::span<const Row> draws) {
  const auto failed = std::ranges::find_if(draws, [](const Row& row) { return !row.text("failed").empty(); });
  if (failed != draws.end()) return *failed;
  Row medians = draws.front();
  for (auto& [column, cell] : medians.cells) {
    if (!std::holds_alternative<double>(cell)) continue;
    std::vector<double> values;
    for (const Row& row : draws) values.push_back(row.number(column).value_or(0));
    cell = median_of(values);
  }
  return medians;
}

Row row_of(const std::string& text) {
  Row row = read_json_lines(text + "\n", "simulation").rows.at(0);
  std::erase_if(row.cells, [](const auto& cell) { return cell.first == "scenario"; });
  return row;
}

}  // namespace

SearchedScenario read_searched_scenario(const SearchCommand& command, Library& library) {
  SearchedScenario searched;
  Scenario& scenario = searched.scenario;
  scenario = read_scenario(command.scenario, parse_assignments(command.settings));
  if (!command.layouts) searched.keys = read_search_keys(command.over, scenario);
  std::vector<Assignment> fixed;
  for (const Assignment& one : chosen_point(scenario, command.point).values) {
    if (!is_searched(searched.keys, one.path)) fixed.push_back(one);
  }
  if (command.gpus > 0) {
    std::erase_if(fixed, [](const Assignment& one) { return one.path == "workers"; });
    fixed.push_back(assignment("workers", command.gpus));
  }
  searched.point = point_name(fixed);
  searched.draws = drawn_values(scenario, fixed, command.draws, library);
  if (!command.layouts) check(searched, library);
  return searched;
}

std::string fingerprint_of(const SearchedScenario& searched, const Library& library,
                           const SearchCommand& command) {
  std::vector<std::string> texts = command.settings;
  texts.push_back(searched.point);
  if (searched.draws.size() > 1) texts.push_back(fmt::format("{} draws", searched.draws.size()));
  for (const SearchKey& key : searched.keys) texts.push_back(key.parameter.name);
  return fingerprint_of(input_files(searched.scenario, library), texts);
}

RunLimits limits_of(const SearchCommand& command) {
  RunLimits limits;
  limits.processes = command.processes;
  limits.memory_limit = command.memory_limit;
  limits.time_limit = command.time_limit;
  return limits;
}

Row simulated_setting(const SearchedScenario& searched, std::vector<Assignment> values, Library& library,
                      const RunLimits& limits) {
  try {
    const Experiment experiment = build_experiment(searched.scenario.document, std::move(values), library);
    const RunSize size = run_size(experiment, 1, 1);
    check_limits(size, limits);
    check_time(experiment, size, limits);
    return simulate_point(experiment);
  } catch (const InputError& error) {
    return failed_row(error.what());
  } catch (const LimitError& error) {
    return failed_row(error.what());
  }
}

SearchSimulator::SearchSimulator(const SearchedScenario& searched, Library& library,
                                 const SearchCommand& command)
    : searched_(searched),
      library_(library),
      limits_(limits_of(command)),
      progress_((command.evaluations + 1) * searched.draws.size(), "simulations") {}

std::map<std::string, Row> SearchSimulator::rows_of(const ChosenSettings& settings) {
  const std::size_t draws = searched_.draws.size();
  std::vector<Task> tasks;
  for (const auto& [name, chosen] : settings) {
    for (const std::vector<Assignment>& draw : searched_.draws)
      tasks.push_back([this, values = joined(draw, chosen)] {
        return to_json_line({}, simulated_setting(searched_, values, library_, limits_));
      });
  }
  std::vector<Row> of_task(tasks.size());
  run_tasks(tasks, limits_.processes, [&](std::size_t task, const std::string& text) {
    of_task[task] = row_of(text);
    progress_.one_done();
  });
  std::map<std::string, Row> rows;
  std::span<const Row> left = of_task;
  for (const auto& [name, chosen] : settings) {
    rows[name] = median_row(left.first(draws));
    left = left.subspan(draws);
  }
  return rows;
}

std::map<std::string, Row> SearchSimulator::operator()(const std::map<std::string, Values>& settings) {
  return rows_of(chosen_settings(searched_, settings));
}

Row SearchSimulator::as_written() {
  return rows_of({{kAsWritten, {}}})[kAsWritten];
}

Seconds SearchSimulator::time_of_setting() {
  const double before = children_seconds();
  as_written();
  return Seconds{children_seconds() - before};
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

/// Medians over the trainings of one setting. A median that is not finite has no cell.
Row row_of(const std::vector<LearnedRun>& runs) {
  Row row;
  for (const char* column : kLearnedColumns) {
    std::vector<double> values;
    for (const LearnedRun& run : runs) values.push_back(quantity(run, column));
    if (const double median = median_of(values); std::isfinite(median)) row.set(column, median);
  }
  row.set("seconds", runs.front().seconds);
  row.set("samples_per_second", runs.front().seconds > 0 ? runs.front().samples / runs.front().seconds : 0);
  row.set("seeds", std::ranges::max(runs, {}, &LearnedRun::seed).seed);
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

Scenario SearchLearner::of_setting(const std::string& name, const std::vector<Assignment>& chosen) const {
  Scenario one = searched_.scenario;
  one.settings.clear();  // the points have them, and a key can be removed only once
  one.points.clear();
  for (const std::vector<Assignment>& draw : searched_.draws)
    one.points.push_back({fmt::format("{}, draw {}", name, one.points.size() + 1), joined(draw, chosen)});
  return one;
}

std::map<std::string, Row> SearchLearner::rows_of(const ChosenSettings& settings) {
  std::map<std::string, Row> rows;
  std::vector<LearningRun> runs;
  std::map<std::string, std::string> setting_of;  // by the name of a draw's point
  for (const auto& [name, chosen] : settings) {
    const Scenario one = of_setting(name, chosen);
    for (const Point& point : one.points) setting_of[point.name] = name;
    try {
      std::vector<LearningRun> trainings = learning_runs(one);
      check_learning_limits(trainings, cut_trainings(one, trainings),
                            {command_.processes, command_.memory_limit, command_.time_limit});
      std::ranges::move(trainings, std::back_inserter(runs));
    } catch (const InputError& error) {
      rows[name] = failed_row(error.what());
    } catch (const LimitError& error) {
      rows[name] = failed_row(error.what());
    }
  }
  if (runs.empty()) return rows;
  const std::optional<double> target = runs.front().experiment.learning->target_loss;
  std::map<std::string, std::vector<LearnedRun>> by_setting;
  const Scenario unchanged = of_setting(kAsWritten, {});
  const LearningJob job{.scenario = unchanged, .folder = folder_, .processes = command_.processes};
  for (LearnedRun& run : learned_runs(trained(job, std::move(runs)), target))
    by_setting[setting_of.at(run.point)].push_back(std::move(run));
  for (const auto& [name, of_setting] : by_setting) rows[name] = row_of(of_setting);
  return rows;
}

std::map<std::string, Row> SearchLearner::operator()(const std::map<std::string, Values>& settings) {
  return rows_of(chosen_settings(searched_, settings));
}

Row SearchLearner::as_written() {
  return rows_of({{kAsWritten, {}}})[kAsWritten];
}

Seconds SearchLearner::time_of_setting() {
  const Scenario unchanged = of_setting(kAsWritten, {});
  const std::vector<LearningRun> runs = learning_runs(unchanged);
  return learning_time(runs, cut_trainings(unchanged, runs));
}

}  // namespace stepcast
