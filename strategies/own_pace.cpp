#include "strategies/own_pace.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace stepcast {
namespace {

/// Of one worker, from the end of its first step to that of its last one before `until` (of its second at
/// least).
double mean_step(const std::vector<double>& ends, double until) {
  if (ends.size() == 1) return ends.front();
  const auto before = std::upper_bound(ends.begin(), ends.end(), until) - ends.begin();
  const auto last = std::max<std::ptrdiff_t>(before - 1, 1);
  return (ends[static_cast<std::size_t>(last)] - ends.front()) / static_cast<double>(last);
}

}  // namespace

double start_seconds(const Plan& plan, const Noise& noise, int rank) {
  if (!plan.asynchronous || noise.start_spread == 0) return 0;
  int before = 0, training = 0;
  bool trains = false;
  for (const Role& role : plan.roles) {
    if (!role.training) continue;
    training += role.members;
    before += std::clamp(rank - role.first_rank, 0, role.members);
    trains = trains || (rank >= role.first_rank && rank < role.first_rank + role.members);
  }
  return trains ? noise.start_spread * before / training : 0;
}

double own_pace_step_seconds(const std::vector<std::vector<double>>& ends) {
  double until = std::numeric_limits<double>::infinity();  // when one has ended all its steps
  for (const auto& worker : ends) {
    if (!worker.empty()) until = std::min(until, worker.back());
  }
  double rate = 0, workers = 0;
  for (const auto& worker : ends) {
    if (worker.empty()) continue;
    rate += 1 / mean_step(worker, until);
    ++workers;
  }
  if (workers == 0) throw std::invalid_argument("no worker ended a step");
  return workers / rate;
}

}  // namespace stepcast
