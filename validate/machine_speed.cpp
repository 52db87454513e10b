#include "validate/machine_speed.hpp"

#include <algorithm>

#include "validate/gather.hpp"
#include "validate/repeats.hpp"

namespace stepcast {

MachineSpeed::MachineSpeed(Transport& transport, std::function<double()> probe)
    : transport_(transport), probe_(std::move(probe)) {}

double MachineSpeed::probe() {
  barrier(transport_);
  double slowest = 0;
  for (const std::vector<double>& rank : gathered(transport_, {probe_()}))
    slowest = std::max(slowest, rank.at(0));
  slowest = shared_value(transport_, slowest);
  sum_ += slowest;
  ++count_;
  return slowest;
}

void MachineSpeed::set_pace() {
  pace_ = count_ > 0 ? sum_ / count_ : 0;
}

}  // namespace stepcast
