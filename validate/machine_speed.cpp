#include "validate/machine_speed.hpp"

#include "report/statistics.hpp"
#include "validate/gather.hpp"
#include "validate/repeats.hpp"

namespace stepcast {

MachineSpeed::MachineSpeed(Transport& transport, std::function<double()> probe)
    : transport_(transport), probe_(std::move(probe)) {}

double MachineSpeed::probe() {
  barrier(transport_);
  std::vector<double> seconds;
  for (const std::vector<double>& rank : gathered(transport_, {probe_()})) seconds.push_back(rank.at(0));
  const double all = shared_value(transport_, seconds.empty() ? 0 : mean(seconds));
  sum_ += all;
  ++count_;
  return all;
}

void MachineSpeed::set_pace() {
  pace_ = count_ > 0 ? sum_ / count_ : 0;
}

}  // namespace stepcast
