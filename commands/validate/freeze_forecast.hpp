#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include "commands/learn/learning_points.hpp"
#include "report/results/results.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {

/// Forecast of the losses of real ranks over time. Empty without `learning.target_loss`.
struct LearningForecast {
  Results rows;  ///< as in learning.csv
  std::optional<double> target_loss;
};

/// The experiment of a point with all measured times. @param last  of the run, such as its length
using MeasuredExperiment = std::function<Experiment(std::size_t point, const Overrides& last)>;

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

/// Refuses points that cannot be run for real before the ranks measure anything, which takes minutes.
/// @param limits  of the trainings in the forecast; empty: it has none
/// @throws InputError, and LimitError as check_learning_forecast does
void check_points(const Validation& validation, const ValidationOptions& options, const Cluster& cluster,
                  const std::optional<LearningLimits>& limits);

/// Names of the files with links, layer times and compression times that the forecast of these points needs.
std::vector<std::string> measured_files(const Validation& validation);

/// Refuses a folder that lacks measurements for these points. @throws InputError that names --measured-in
void check_earlier(const Validation& validation, const std::filesystem::path& earlier);

/// Replaces the links and traces that the ranks have measured by those of an earlier validation, also of
/// another number of ranks: the forecast, and the times for which ranks sleep, then know nothing of this
/// launch.
void use_earlier(const Validation& validation, const std::filesystem::path& earlier,
                 const std::filesystem::path& folder);

struct RealForecast {
  Results steps;              ///< a row of result columns for each point, with the column `point`
  LearningForecast learning;  ///< empty for ranks on GPUs and for sleeping ranks
};

/// The child processes that simulate points.
struct ForecastProcesses {
  int number;                       ///< at the same time
  std::function<void()> meanwhile;  ///< called several times a second
};

/// Writes the platform from the links that the ranks measured (links.jsonl in the folder), and simulates
/// every point on it with the traces that the ranks captured, each in a child process. Points that learn are
/// also trained on the simulated clock. Writes the algorithms of automatic all-reduces (`all_reduce_file`),
/// which the ranks will execute.
/// @throws InputError for a point that cannot be run for real
RealForecast predict_real(const Validation& validation, const ValidationOptions& options,
                          const Cluster& cluster, const std::filesystem::path& folder,
                          const ForecastProcesses& processes);

}  // namespace stepcast
