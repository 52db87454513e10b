#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "commands/learn/learning_limits.hpp"
#include "report/results/results.hpp"
#include "runtime/scenario_points/validation_plan.hpp"

namespace stepcast {

/// Forecast of the losses of real ranks over time. Empty without `learning.target_loss`.
struct LearningForecast {
  Results rows;  ///< as in learning.csv
  std::optional<double> target_loss;
};

/// The experiment of a point with all measured times. @param last  settings that come after all others
using MeasuredExperiment = std::function<Experiment(std::size_t point, const std::vector<Assignment>& last)>;

/// Throws LimitError if the trainings of a forecast would need more memory or time than the limits.
/// @param points      the experiment of each point, with any layer times
/// @param experiment  makes such experiments
void check_learning_forecast(const Validation& validation, const std::vector<Experiment>& points,
                             const MeasuredExperiment& experiment, const LearningLimits& limits);

/// If the scenario has a target loss, trains all points that learn with real kernels on the clock of the
/// simulated ranks, each with all its seeds, in child processes.
/// @param points     the measured experiment of each point
/// @param meanwhile  called several times a second
LearningForecast learning_forecast(const Validation& validation, const std::vector<Experiment>& points,
                                   const MeasuredExperiment& experiment, int processes,
                                   const std::function<void()>& meanwhile);

}  // namespace stepcast
