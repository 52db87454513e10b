#include "commands/validate/learning_forecast.hpp"

#include <algorithm>
#include <iterator>

#include "commands/learn/learning_points.hpp"
#include "forecast/processes/process_pool.hpp"
#include "report/results/results_text.hpp"
#include "runtime/learning/learning_runs.hpp"

namespace stepcast {
namespace {

constexpr int kProcesses = 2;

/// The rows of a training as JSON lines.
std::string learned_lines(const Experiment& experiment, std::int64_t batch, const std::string& point,
                          std::int64_t seed) {
  Results learned{"learning", {}};
  for (Row& row : simulate_learning(experiment, batch).rows) {
    row.set("seed", seed);
    learned.rows.push_back(with_first("point", point, row));
  }
  return to_json_lines(learned);
}

}  // namespace

LearningForecast learning_forecast(const Validation& validation, const MeasuredExperiment& experiment,
                                   const std::function<void()>& meanwhile) {
  LearningForecast forecast{{validation.scenario.name, {}}, {}};
  std::vector<Task> tasks;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    const Experiment timed = experiment(i, {});
    if (!timed.learning) continue;
    if (!forecast.target_loss) forecast.target_loss = timed.learning->target_loss;
    for (std::int64_t seed = 1; seed <= timed.learning->seeds; ++seed) {
      tasks.push_back([&, i, seed, settings = learning_settings(timed, seed)] {
        return learned_lines(experiment(i, settings), validation.variants[i].batch,
                             validation.scenario.points[validation.points[i]].name, seed);
      });
    }
  }
  if (!forecast.target_loss) return forecast;
  std::vector<std::vector<Row>> rows(tasks.size());
  run_tasks(
      tasks, kProcesses,
      [&](std::size_t task, const std::string& text) {
        rows[task] = read_json_lines(text, "a training").rows;
      },
      meanwhile);
  for (std::vector<Row>& of_training : rows)
    std::ranges::move(of_training, std::back_inserter(forecast.rows.rows));
  return forecast;
}

}  // namespace stepcast
