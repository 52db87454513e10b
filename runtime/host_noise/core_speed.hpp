#pragma once

#include <functional>
#include <vector>

#include "runtime/transport/transport.hpp"

namespace stepcast {

/// Measures how fast the ranks' cores are now. Virtual cores of a shared host switch between two speeds a
/// third apart, each core on its own and several times a second, depending on what other virtual machines run
/// on the same physical cores; neither /proc/stat nor a comparison of wall time and CPU time shows it. One
/// probe says little about a run beside it, but the mean of many probes says how much of a time was slow.
class CoreSpeedProbe {
 public:
  /// @param probe  executes this rank's probe, a fixed amount of work, and returns its duration [s]
  CoreSpeedProbe(Transport& transport, std::function<double()> probe);

  /// Runs the probe on all ranks at once.
  /// @return the duration on the slowest rank, for which the others wait; the same on all ranks [s]
  double probe();

  /// Sets the reference to the mean of all probes so far, without interrupted ones.
  void set_reference();
  /// Mean duration of a probe while the captures were taken [s]; 0 before set_reference.
  double reference_seconds() const { return reference_; }

 private:
  Transport& transport_;
  std::function<double()> probe_;
  std::vector<double> seconds_;
  double reference_ = 0;
};

/// Mean of the probes that take at most 1.5 times `usual`, as they do at a core's slower speed. A longer
/// probe was interrupted and says nothing about speed (the threads of two ranks on one core take twice as
/// long). Returns 1.5 times `usual` if no probe is left.
double mean_of_probes(const std::vector<double>& seconds, double usual);

}  // namespace stepcast
