#pragma once

#include "validate/transport.hpp"

namespace stepcast {

/// How far apart the ranks' cores are. The host of a virtual machine moves its cores several times a second:
/// those of two ranks share a third-level cache at times (a cache line goes there and back in 0.05 us) and do
/// not at others (0.32 us), and sums of gradients take up to four times as long. What is measured and what is
/// forecast from it are comparable where the cores are as they were. All ranks call each function at once,
/// and get the same.
class CoreDistance {
 public:
  explicit CoreDistance(Transport& transport) : transport_(transport) {}

  /// A float goes round all ranks [s]: the quickest of some dozen turns, so that interruptions do not count.
  double round_trip();

  /// From now on the distance is what it is most of the time, over the next `seconds`.
  void settle(double seconds);

  /// Whether it is within a half of what was settled.
  bool is_settled();
  bool is_settled(double round_trip) const;

  /// Returns when it is, false if it is not for so long. Later calls wait less where many waited in vain.
  bool wait();

 private:
  Transport& transport_;
  double settled_ = 0;
  double patience_ = 60;  ///< seconds that are left to wait, of all calls
};

}  // namespace stepcast
