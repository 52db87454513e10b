#pragma once

#include <string>

#include "core/typed_numbers.hpp"

namespace stepcast {

/// Sets the number of threads that kernels of this process use from now on, and flushes denormal numbers to
/// zero in this thread and those that it starts.
void set_kernel_threads(int threads);

/// Model name of the first processor and number of cores, such as "Intel(R) Xeon(R) Processor @ 2.50GHz, 2
/// cores".
std::string processor_name();

/// Steal time: processor seconds, summed over all cores since the machine started, that this virtual machine
/// was ready to run while its host ran others. Read from `steal` in Linux' /proc/stat, in ticks of 10 ms; 0
/// if the system does not report it.
double stolen_seconds();

/// Steal time from the text of /proc/stat.
/// @param ticks_a_second  sysconf(_SC_CLK_TCK)
double stolen_seconds(const std::string& text, double ticks_a_second);

/// Largest share of stolen time at which a measurement still counts. Evidence from 198 runs of 26 strategies
/// on two virtual cores that passed messages over two links of 1 Gbit/s: runs that lost up to 6 % took as
/// long as undisturbed ones (median; -2 to +5 %), runs that lost 10 to 20 % took 11 % longer, runs that lost
/// 20 to 50 % took 28 % longer.
constexpr double kMaxStolenShare = 0.05;

/// Measures the time of all cores that was stolen since its construction.
class StolenShare {
 public:
  StolenShare();
  double seconds() const;  ///< core-seconds
  /// The share of all cores' time. @param expected  core-seconds that are not counted
  double until_now(double expected = 0) const;

 private:
  double wall_, stolen_;
};

}  // namespace stepcast
