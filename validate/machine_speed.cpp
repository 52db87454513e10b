#include "validate/machine_speed.hpp"

#include "report/statistics.hpp"
#include "validate/repeats.hpp"

namespace stepcast {

MachineSpeed::MachineSpeed(Transport& transport, std::function<double()> probe)
    : transport_(transport), probe_(std::move(probe)) {}

double MachineSpeed::probe() {
  barrier(transport_);
  seconds_.push_back(greatest_value(transport_, probe_()));
  return seconds_.back();
}

void MachineSpeed::set_pace() {
  pace_ = seconds_.empty() ? 0 : mean_of_probes(seconds_, median_of(seconds_));
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
