#include <algorithm>
#include <stdexcept>

#include "report/statistics/statistics.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
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
  return statistic == StepStatistic::mean ? mean(seconds) : median_of(seconds);
}

double asynchronous_step_seconds(const std::vector<std::vector<double>>& ends) {
  for (const std::vector<double>& worker : ends) {
    if (worker.size() == 1)
      throw std::invalid_argument(
          "simulation.steps: expected at least 2 steps of each worker in a real run of workers that step "
          "independently");
  }
  return own_pace_step_seconds(ends);
}

double waiting_seconds(const std::vector<std::vector<double>>& compute, int workers) {
  double sum = 0, slowest = 0;
  std::size_t steps = 0;
  for (const std::vector<double>& rank : compute) steps = std::max(steps, rank.size());
  for (std::size_t step = 0; step < steps; ++step) {
    double most = 0;
    for (const std::vector<double>& rank : compute) {
      const double seconds = step < rank.size() ? rank[step] : 0;
      sum += seconds;
      most = std::max(most, seconds);
    }
    slowest += most;
  }
  return steps == 0 ? 0 : std::max(0.0, slowest - sum / workers) / static_cast<double>(steps);
}

}  // namespace stepcast
