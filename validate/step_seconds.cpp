#include "validate/step_seconds.hpp"

#include <algorithm>
#include <stdexcept>

#include "report/statistics.hpp"

namespace stepcast {
namespace {

/// Steps ended by then, and the share of the one under way; `date` is not before the first end.
double steps_until(const std::vector<double>& ends, double date) {
  const auto next = std::upper_bound(ends.begin(), ends.end(), date);
  const auto ended = static_cast<double>(next - ends.begin());
  return next == ends.end() ? ended : ended + (date - *(next - 1)) / (*next - *(next - 1));
}

}  // namespace

double synchronous_step_seconds(const std::vector<std::vector<double>>& ends) {
  std::vector<double> last;
  for (const std::vector<double>& worker : ends) {
    if (worker.empty()) continue;
    last.resize(std::max(last.size(), worker.size()), 0);
    for (std::size_t i = 0; i < worker.size(); ++i) last[i] = std::max(last[i], worker[i]);
  }
  if (last.size() < 2) throw std::invalid_argument("a real run needs two steps at least");
  std::vector<double> seconds;
  for (std::size_t i = 1; i < last.size(); ++i) seconds.push_back(last[i] - last[i - 1]);
  return median_of(seconds);
}

double asynchronous_step_seconds(const std::vector<std::vector<double>>& ends) {
  const std::vector<double>* first = nullptr;  // to end all of its steps
  for (const std::vector<double>& worker : ends) {
    if (!worker.empty() && (first == nullptr || worker.back() < first->back())) first = &worker;
  }
  if (first == nullptr || first->size() < 2)
    throw std::invalid_argument("a real run of workers without a common pace needs more steps");
  double from = (*first)[first->size() / 2 - 1], workers = 0, steps = 0;
  for (const std::vector<double>& worker : ends) {
    if (!worker.empty()) from = std::max(from, worker.front());
  }
  const double to = first->back();
  for (const std::vector<double>& worker : ends) {
    if (worker.empty()) continue;
    workers += 1;
    steps += steps_until(worker, to) - steps_until(worker, from);
  }
  if (!(to > from))
    throw std::invalid_argument("a real run of workers without a common pace needs more steps");
  return (to - from) / steps * workers;
}

}  // namespace stepcast
