#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <thread>
#include <vector>

namespace stepcast {

/// Lets several ranks of this machine compute on each core as if each had a slower core of its own: they take
/// turns, and a rank that waits uses up its turns. So the speed of a rank depends neither on what it did
/// before nor on what the others do. With a quota of CPU time it did: the scheduler looks at a quota when its
/// timer ticks, every 4 ms, so that a rank ran for up to 4 ms and then stood still for up to 6 ms.
///
/// Each rank has a control group (of either version), because the scheduler divides a core equally among
/// groups, not among processes with different numbers of threads. On each core a thread of real-time priority
/// wakes after each turn, because a turn ends only when something interrupts it. Turns are of random lengths,
/// so that ranks on different cores do not stay in step or out of step for a whole run. Usually only root can
/// do both.
class CoreShares {
 public:
  static constexpr double kTurn = 2e-4;  ///< mean length of a turn [s]
  /// Floats of a ring buffer between ranks: more than a rank copies in a turn, so that it does not stop where
  /// the other rank's turn is another time.
  static constexpr std::int64_t kRing = 1 << 19;

  /// Makes a group for each rank and starts the threads.
  /// @throws InputError that says what the system does not allow, and why
  explicit CoreShares(int ranks);
  CoreShares(const CoreShares&) = delete;
  /// Removes the groups. Their processes must have ended; those that have not stay in them.
  ~CoreShares();

  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
  std::vector<std::jthread> timers_;
};

/// Moves this process with all its threads into the group of a rank.
/// @throws std::runtime_error if the system does not allow it
void join_core_share(const std::filesystem::path& folder, int rank);

/// Sets the time slice of the calling thread, and of threads that it starts, to the shortest turn. The thread
/// that it returns uses up the turns in which all other threads of the rank wait, by calls of `fill`.
std::jthread take_turns(std::function<void()> fill);

}  // namespace stepcast
