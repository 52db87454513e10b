#include "campaigns/checkpoint_interval.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepcast {
namespace {

constexpr double kStep = 0.25;              ///< step of the grid, as a power of two
constexpr double kEnoughFailures = 20'000;  ///< in all draws of one mean total time
constexpr int kGridSteps = 8;               ///< steps of the grid on each side of its middle

double root_of(const CheckpointProblem& problem) {
  return std::sqrt(2 * problem.write.value * problem.mtbf.value);
}

/// Mean total time at this interval; infinity if a training did not finish.
double total_at(Faults& faults, double interval, int draws) {
  faults.checkpoints.interval = {interval};
  const TrainingTime mean = mean_training_time(faults, draws);
  return mean.finished ? mean.total.value : std::numeric_limits<double>::infinity();
}

/// Abscissa of the vertex of the least-squares parabola through (x, y). x is centered on the least y. Returns
/// 0 if the vertex is not within 1 of it.
double vertex(const std::vector<double>& x, const std::vector<double>& y) {
  double s1 = 0, s2 = 0, s3 = 0, s4 = 0, t0 = 0, t1 = 0, t2 = 0;
  const double n = x.size();
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double square = x[i] * x[i];
    s1 += x[i], s2 += square, s3 += square * x[i], s4 += square * square;
    t0 += y[i], t1 += y[i] * x[i], t2 += y[i] * square;
  }
  // Normal equations of y = a + b x + c x^2 by Cramer's rule; only b / c is needed.
  const double b = n * (t1 * s4 - s3 * t2) - s1 * (t0 * s4 - s2 * t2) + s2 * (t0 * s3 - s2 * t1);
  const double c = n * (s2 * t2 - t1 * s3) - s1 * (s1 * t2 - t1 * s2) + t0 * (s1 * s3 - s2 * s2);
  return c != 0 && b / c * -0.5 > -1 && b / c * -0.5 < 1 ? -0.5 * b / c : 0;
}

}  // namespace

CheckpointProblem checkpoint_problem(const Faults& faults) {
  return {faults.checkpoints.write, faults.node_mtbf / faults.nodes};
}

Seconds young_interval(const CheckpointProblem& problem) {
  return {root_of(problem)};
}

Seconds daly_interval(const CheckpointProblem& problem) {
  if (problem.write >= 2 * problem.mtbf) return problem.mtbf;
  const double share = problem.write / (2 * problem.mtbf);
  return {root_of(problem) * (1 + std::sqrt(share) / 3 + share / 9) - problem.write.value};
}

Seconds best_interval(Faults faults, int draws) {
  const CheckpointProblem problem = checkpoint_problem(faults);
  if (problem.mtbf.value == 0) return faults.training;
  const double failures = faults.training / problem.mtbf;
  draws = std::clamp<int>(kEnoughFailures / failures, std::min(draws, 4), draws);
  double middle = std::clamp(daly_interval(problem).value, 1e-9, faults.training.value);
  for (int tries = 0; tries < 8; ++tries) {
    std::vector<double> totals;
    for (int i = -kGridSteps; i <= kGridSteps; ++i) {
      const double interval = std::min(middle * std::exp2(kStep * i), faults.training.value);
      totals.push_back(total_at(faults, interval, draws));
    }
    const auto least = std::min_element(totals.begin(), totals.end());
    const int at = (least - totals.begin()) - kGridSteps;
    const double found = std::min(middle * std::exp2(kStep * at), faults.training.value);
    if (found == faults.training.value) return faults.training;
    if (std::abs(at) == kGridSteps) {
      middle = found;
      continue;
    }
    std::vector<double> x, y;
    for (int i = std::max(at - 4, -kGridSteps); i <= std::min(at + 4, kGridSteps); ++i) {
      const double total = totals[i + kGridSteps];
      if (!std::isfinite(total) || middle * std::exp2(kStep * i) > faults.training.value) continue;
      x.push_back(kStep * (i - at));
      y.push_back(total / *least - 1);
    }
    return {found * std::exp2(x.size() >= 4 ? vertex(x, y) : 0)};
  }
  return {middle};
}

}  // namespace stepcast
