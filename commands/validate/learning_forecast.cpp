
#include <algorithm>
#include <iterator>

#include "commands/learn/learning_points.hpp"
#include "commands/validate/freeze_forecast.hpp"
#include "forecast/processes/process_pool.hpp"
#include "report/results/results.hpp"
#include "runtime/learning/learning_runs.hpp"

namespace stepcast {
namespace {

/// The rows of a training as JSON lines.
std::string learned_lines(const Experiment& experiment, std::int64_t batch, const std::string& point,
                          std::int64_t seed) {
  Results learned{"learning", {}};
  for (EvaluatedLoss& one : simulate_learning(experiment, batch).evaluations) {
    one.point = point;
    one.seed = seed;
    learned.rows.push_back(to_row(one));
  }
  return to_json_lines(learned);
}

std::optional<double> target_loss(const std::vector<Experiment>& points) {
  for (const Experiment& point : points) {
    if (point.learning && point.learning->target_loss) return point.learning->target_loss;
  }
  return std::nullopt;
}

}  // namespace

void check_learning_forecast(const Validation& validation, const std::vector<Experiment>& points,
                             const MeasuredExperiment& experiment, const LearningLimits& limits) {
  if (!target_loss(points)) return;
  std::vector<LearningRun> runs;
  std::vector<std::size_t> point_of;  // of each training
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::int64_t seed = 1; points[i].learning && seed <= points[i].learning->seeds; ++seed) {
      runs.push_back({validation.point(i).name, seed, points[i], validation.variants[i].batch});
      point_of.push_back(i);
    }
  }
  const CutTraining cut = [&](std::size_t run, std::int64_t mini_batches) {
    const int length = mini_batches;
    Overrides of_training =
        learning_overrides(experiment(point_of[run], Overrides{.mini_batches = length}), 1);
    of_training.mini_batches = length;
    return LearningRun{runs[run].point, 1, experiment(point_of[run], of_training), runs[run].batch};
  };
  check_learning_limits(runs, cut, limits);
}

LearningForecast learning_forecast(const Validation& validation, const std::vector<Experiment>& points,
                                   const MeasuredExperiment& experiment, int processes,
                                   const std::function<void()>& meanwhile) {
  LearningForecast forecast{{validation.scenario.name, {}}, target_loss(points)};
  if (!forecast.target_loss) return forecast;
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::int64_t seed = 1; points[i].learning && seed <= points[i].learning->seeds; ++seed) {
      tasks.push_back([&, i, seed] {
        return learned_lines(experiment(i, learning_overrides(points[i], seed)), validation.variants[i].batch,
                             validation.point(i).name, seed);
      });
    }
  }
  std::vector<std::vector<Row>> rows(tasks.size());
  run_tasks(
      tasks, processes,
      [&](std::size_t task, const std::string& text) {
        rows[task] = read_json_lines(text, "a training").rows;
      },
      meanwhile);
  for (std::vector<Row>& of_training : rows)
    std::ranges::move(of_training, std::back_inserter(forecast.rows.rows));
  return forecast;
}

}  // namespace stepcast
