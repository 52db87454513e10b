#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "validate/control.hpp"

namespace stepcast {

/// A rank that is dead or hangs, and how to say so: "died", "hung for 30 s".
struct LostRank {
  int rank = 0;
  bool died = false;
  std::string how;
};

/// "rank 1 on h died during step 3 of ...".
std::string named(const Control& control, const LostRank& lost);

/// Looks after the ranks of one machine: who died, who hangs.
class Watch {
 public:
  Watch(const Control& control, double heartbeat);

  std::optional<LostRank> look();
  bool all_finished() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// A thread's sign of life.
  struct Seen {
    std::uint64_t beat = 0;
    Clock::time_point when;
  };

  /// Time in which nobody looked counts for no one: the whole machine may have stood still.
  void forgive(Clock::time_point now);
  /// How long the thread of a rank that is silent for longest has been so. [s]
  double silence(int rank, Clock::time_point now);

  const Control& control_;
  double heartbeat_;
  Clock::time_point looked_ = Clock::now();
  std::vector<std::array<Seen, 3>> seen_;
};

}  // namespace stepcast
