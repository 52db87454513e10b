#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "runtime/ranks/shared_control_block.hpp"

namespace stepcast {

/// A rank that died or hangs.
struct RankFailure {
  int rank = 0;
  bool died = false;
  std::string how;  ///< for messages: "died", "hung for 30 s"
};

/// "rank 1 on h died during step 3 of ...".
std::string failure_text(const SharedControlBlock& control, const RankFailure& failure);

/// Finds failed ranks of one machine, like torchrun's agent: a rank failed if its process died, or if the
/// heartbeat of one of its threads stopped for longer than a timeout.
class HeartbeatMonitor {
 public:
  /// @param heartbeat  timeout [s]
  HeartbeatMonitor(const SharedControlBlock& control, double heartbeat);

  /// Checks all ranks. Returns the failed one; empty if there is none. Call it several times a second.
  std::optional<RankFailure> check();
  bool all_finished() const;

 private:
  using Clock = std::chrono::steady_clock;
  /// The last change of a thread's heartbeat.
  struct LastBeat {
    std::uint64_t beat = 0;
    Clock::time_point when;
  };

  /// Extends all deadlines by the time since the last check if that was longer than usual: the whole machine
  /// may have been suspended.
  void reset_deadlines(Clock::time_point now);
  /// Time since the last heartbeat of the rank's most silent thread [s].
  double silence(int rank, Clock::time_point now);

  const SharedControlBlock& control_;
  double heartbeat_;
  Clock::time_point last_check_ = Clock::now();
  std::vector<std::array<LastBeat, 3>> last_beats_;  ///< per rank, for its three threads
};

}  // namespace stepcast
