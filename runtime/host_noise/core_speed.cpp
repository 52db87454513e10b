#include "runtime/host_noise/core_speed.hpp"

#include "report/statistics/statistics.hpp"
#include "runtime/host_noise/repeated_timing.hpp"

namespace stepcast {

CoreSpeedProbe::CoreSpeedProbe(Transport& transport, std::function<double()> probe)
    : transport_(transport), probe_(std::move(probe)) {}

double CoreSpeedProbe::probe() {
  barrier(transport_);
  seconds_.push_back(max_over_ranks(transport_, probe_()));
  return seconds_.back();
}

void CoreSpeedProbe::set_reference() {
  reference_ = seconds_.empty() ? 0 : mean_of_probes(seconds_, median_of(seconds_));
}

double mean_of_probes(const std::vector<double>& seconds, double usual) {
  constexpr double kSlowest = 1.5;
  double sum = 0;
  int count = 0;
  for (const double one : seconds) {
    if (one > kSlowest * usual) continue;
    sum += one;
    ++count;
  }
  return count > 0 ? sum / count : kSlowest * usual;
}

}  // namespace stepcast
