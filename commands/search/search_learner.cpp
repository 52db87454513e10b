#include "commands/search/search_learner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "commands/learn/learning_points.hpp"
#include "commands/learn/simulate_learning.hpp"
#include "core/error.hpp"
#include "report/statistics/statistics.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {
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
