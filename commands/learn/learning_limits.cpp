#include "commands/learn/learning_limits.hpp"

#include <fmt/format.h>

#include <algorithm>

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
  return static_cast<double>(run.experiment.plan.endpoints.size()) *
         static_cast<double>(learning_steps(run.experiment)) *
         static_cast<double>(mini_batches_a_step(run.experiment.plan));
}

/// An upper bound of the processor time of a training [s].
double most_seconds(const LearningRun& run) {
  const Model& model = run.experiment.model;
  const double pass = static_cast<double>(run.batch) * training_flops(model).value / kSlowKernels;
  return worker_steps(run) * (pass + kSlowLayer * static_cast<double>(model.layers.size()));
}

/// Processor time of a training that is cut to `mini_batches` [s].
double timed(const Scenario& scenario, const LearningRun& run, std::int64_t mini_batches) {
  const LearningRun cut = cut_training(scenario, run, mini_batches);
  const double before = children_seconds();
  run_tasks({[&cut] { return (simulate_learning(cut.experiment, cut.batch), std::string()); }}, 1,
            [](std::size_t, const std::string&) {});
  return children_seconds() - before;
}

/// Processor time of a whole training, from the difference between a longer and the shortest one [s].
double estimated_seconds(const Scenario& scenario, const LearningRun& run) {
  const std::int64_t all = run.experiment.learning->mini_batches;
  const double first = timed(scenario, run, 1);
  for (std::int64_t tried = std::min<std::int64_t>(8, all);; tried = std::min(8 * tried, all)) {
    const double more = timed(scenario, run, tried) - first;
    if (more > kTimedSeconds || tried == all)
      return first +
             more / static_cast<double>(std::max<std::int64_t>(tried - 1, 1)) * static_cast<double>(all - 1);
  }
}

/// Trainings that a run stands for: those of all folds of all points of a campaign, else one.
double trainings_of(const LearningRun& run) {
  if (!run.experiment.campaign) return 1;
  const Campaign& campaign = run.experiment.campaign->campaign;
  return static_cast<double>(campaign.points) * campaign.folds;
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

Seconds learning_time(const Scenario& scenario, const std::vector<LearningRun>& runs) {
  const auto most = [](const LearningRun& run) { return most_seconds(run); };
  const LearningRun& largest = std::ranges::max(runs, {}, most);
  return Seconds{most_seconds(runs) / most_seconds(largest) * estimated_seconds(scenario, largest)};
}

void check_learning_limits(const Scenario& scenario, const std::vector<LearningRun>& runs,
                           const LearningLimits& limits) {
  check_process_memory(learning_memory(runs), limits.processes, limits.memory);
  const Seconds limit = time_limit(limits.time);
  if (most_seconds(runs) / limits.processes <= limit.value) return;
  const Seconds needed = (1.0 / limits.processes) * learning_time(scenario, runs);
  if (needed <= limit) return;
  throw LimitError(fmt::format(
      "the trainings need about {} with {} processes, over the limit of {}: use fewer mini-batches, "
      "seeds or points, or raise --time-limit",
      human(needed), limits.processes, human(limit)));
}

}  // namespace stepcast
