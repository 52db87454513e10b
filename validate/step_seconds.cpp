#include "validate/step_seconds.hpp"

#include <algorithm>
#include <stdexcept>

#include "report/statistics.hpp"

namespace stepcast {

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
  double from = 0, to = 1e300, workers = 0, ended = 0;
  for (const std::vector<double>& worker : ends) {
    if (worker.empty()) continue;
    from = std::max(from, worker[std::max<std::size_t>(worker.size() / 2, 1) - 1]);
    to = std::min(to, worker.back());
    workers += 1;
  }
  for (const std::vector<double>& worker : ends) {
    ended += static_cast<double>(std::upper_bound(worker.begin(), worker.end(), to) -
                                 std::upper_bound(worker.begin(), worker.end(), from));
  }
  if (!(to > from) || ended == 0)
    throw std::invalid_argument("a real run of workers without a common pace needs more steps");
  return (to - from) / ended * workers;
}

}  // namespace stepcast
