#include "runtime/scenario_points/step_times.hpp"

#include <algorithm>
#include <cstddef>
#include <stdexcept>

#include "report/statistics/statistics.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

double synchronous_step_seconds(const std::vector<std::vector<double>>& ends, StepStatistic statistic) {
  std::vector<double> last;
  for (const std::vector<double>& worker : ends) {
    if (worker.empty()) continue;
    last.resize(std::max(last.size(), worker.size()), 0);
    for (std::size_t i = 0; i < worker.size(); ++i) last[i] = std::max(last[i], worker[i]);
  }
  if (last.size() < 2) throw std::invalid_argument("simulation.steps: expected at least 2 in a real run");
  std::vector<double> seconds;
  for (std::size_t i = 1; i < last.size(); ++i) seconds.push_back(last[i] - last[i - 1]);
  return value_of(statistic, seconds);
}

double independent_step_seconds(const Plan& plan, const std::vector<std::vector<double>>& ends) {
  for (const std::vector<double>& worker : ends) {
    if (worker.size() == 1)
      throw std::invalid_argument(
          "simulation.steps: expected at least 2 steps of each worker in a real run of workers that step "
          "independently");
  }
  return asynchronous_step_seconds(plan, ends);
}

namespace {

/// The first step that counts, of a run of `steps` steps.
std::size_t first_counted(std::size_t steps) {
  return steps > 1 ? 1 : 0;
}

}  // namespace

double mean_compute_seconds(const std::vector<std::vector<double>>& compute, int workers) {
  double sum = 0;
  for (const std::vector<double>& rank : compute) {
    if (rank.empty()) continue;
    const std::size_t first = first_counted(rank.size());
    double of_rank = 0;
    for (std::size_t step = first; step < rank.size(); ++step) of_rank += rank[step];
    sum += of_rank / (rank.size() - first);
  }
  return sum / workers;
}

double waiting_seconds(const std::vector<std::vector<double>>& compute, int workers) {
  std::size_t steps = 0;
  for (const std::vector<double>& rank : compute) steps = std::max(steps, rank.size());
  const std::size_t first = first_counted(steps);
  double sum = 0, slowest = 0;
  for (std::size_t step = first; step < steps; ++step) {
    double most = 0;
    for (const std::vector<double>& rank : compute) {
      const double seconds = step < rank.size() ? rank[step] : 0;
      sum += seconds;
      most = std::max(most, seconds);
    }
    slowest += most;
  }
  return steps == 0 ? 0 : std::max(0.0, slowest - sum / workers) / (steps - first);
}

}  // namespace stepcast
