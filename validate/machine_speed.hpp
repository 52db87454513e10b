#pragma once

#include <functional>
#include <vector>

#include "validate/transport.hpp"

namespace stepcast {

/// How fast the ranks' cores are at a moment. Virtual cores of a shared host change between two speeds a
/// third apart, each on its own and several times a second, by what neighbours do on the same cores: neither
/// /proc/stat nor wall against CPU time tells of it. One probe therefore says little of the run beside it,
/// but the mean of many says what share of a time was slow.
class MachineSpeed {
 public:
  /// @param probe  runs this rank's probe, always the same work, and says how long it took [s]
  MachineSpeed(Transport& transport, std::function<double()> probe);

  /// All ranks probe at once. @return of the slowest rank, for which the others wait [s]; the same on all
  double probe();

  /// The mean of all probes so far, interrupted ones left out, is the pace of this launch, from here on.
  void set_pace();
  double pace() const { return pace_; }

 private:
  Transport& transport_;
  std::function<double()> probe_;
  std::vector<double> seconds_;
  double pace_ = 0;
};

/// Mean of the probes that take at most 1.5 times as long as `usual`, as the slower speed of a core does:
/// what takes longer was interrupted (both ranks' threads on one core take twice as long) and tells nothing
/// of speed. Where none is left, 1.5 times `usual`.
double mean_of_probes(const std::vector<double>& seconds, double usual);

}  // namespace stepcast
