#include <fmt/format.h>

#include <algorithm>

#include "commands/learn/learning_points.hpp"
#include "core/error.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/resource_limits.hpp"
#include "models/cost/cost.hpp"
#include "report/text/display_text.hpp"
#include "runtime/learning/learning_runs.hpp"

namespace stepcast {
namespace {

/// Rates that every core reaches: [FLOP/s] in kernels, and [s] for the calls of a layer in one step.
constexpr double kSlowKernels = 1e9, kSlowLayer = 1e-3;
/// A training is timed until its steps take this long [s].
constexpr double kTimedSeconds = 0.3;

/// Steps of all workers.
double worker_steps(const LearningRun& run) {
  return 1.0 * run.experiment.plan.endpoints.size() * learning_steps(run.experiment) *
         mini_batches_a_step(run.experiment.plan);
}

/// An upper bound of the processor time of a training [s].
double most_seconds(const LearningRun& run) {
  const Model& model = run.experiment.model;
  const double pass = run.batch * training_flops(model).value / kSlowKernels;
  return worker_steps(run) * (pass + kSlowLayer * model.layers.size());
}

/// Processor time of a training [s].
double timed(const LearningRun& run) {
  const double before = children_seconds();
  run_tasks({[&run] { return (simulate_learning(run.experiment, run.batch), std::string()); }}, 1,
            [](std::size_t, const std::string&) {});
  return children_seconds() - before;
}

/// Processor time of a whole training, from the difference between a longer and the shortest one [s].
/// @param all  its mini-batches
double estimated_seconds(std::size_t run, std::int64_t all, const CutTraining& cut) {
  const double first = timed(cut(run, 1));
  for (std::int64_t tried = std::min<std::int64_t>(8, all);; tried = std::min(8 * tried, all)) {
    const double more = timed(cut(run, tried)) - first;
    if (more > kTimedSeconds || tried == all)
      return first + more / std::max<std::int64_t>(tried - 1, 1) * (all - 1);
  }
}

/// Trainings that a run stands for: those of all folds of all points of a campaign, else one.
double trainings_of(const LearningRun& run) {
  if (!run.experiment.campaign) return 1;
  const Campaign& campaign = run.experiment.campaign->campaign;
  return 1.0 * campaign.points * campaign.folds;
}

/// An upper bound of the processor time of all trainings [s].
double most_seconds(const std::vector<LearningRun>& runs) {
  double most = 0;
  for (const LearningRun& run : runs) most += trainings_of(run) * most_seconds(run);
  return most;
}

}  // namespace

Bytes learning_memory(const std::vector<LearningRun>& runs) {
  Bytes memory;
  for (const LearningRun& run : runs) memory = std::max(memory, learning_memory(run.experiment));
  return memory;
}

CutTraining cut_trainings(const Scenario& scenario, const std::vector<LearningRun>& runs) {
  return [&scenario, &runs](std::size_t run, std::int64_t mini_batches) {
    return cut_training(scenario, runs[run], mini_batches);
  };
}

Seconds learning_time(const std::vector<LearningRun>& runs, const CutTraining& cut) {
  const auto most = [](const LearningRun& run) { return most_seconds(run); };
  const auto largest = std::ranges::max_element(runs, {}, most);
  const std::size_t index = largest - runs.begin();
  const double one = estimated_seconds(index, largest->experiment.learning->mini_batches, cut);
  return Seconds{most_seconds(runs) / most_seconds(*largest) * one};
}

void check_learning_limits(const std::vector<LearningRun>& runs, const CutTraining& cut,
                           const LearningLimits& limits) {
  check_process_memory(learning_memory(runs), limits.processes, limits.memory);
  const Seconds limit = time_limit(limits.time);
  if (most_seconds(runs) / limits.processes <= limit.value) return;
  const Seconds needed = (1.0 / limits.processes) * learning_time(runs, cut);
  if (needed <= limit) return;
  throw LimitError(fmt::format(
      "the trainings need about {} with {} process{}, over the limit of {}: use fewer mini-batches, "
      "seeds or points, or raise --time-limit",
      human(needed), limits.processes, limits.processes == 1 ? "" : "es", human(limit)));
}

}  // namespace stepcast
