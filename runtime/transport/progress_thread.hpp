#pragma once

#include <time.h>

#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "strategies/program/program.hpp"

namespace stepcast {

/// Decides whether a waiting progress thread may busy-poll shared memory.
///
/// The program of a rank and its progress threads (one executes collectives, one carries messages) share one
/// core. While the program is blocked, a progress thread polls shared memory, as MPI and NCCL do, because a
/// sleeping thread wakes 30 to 60 us late on a virtual core. At most one of the two progress threads polls.
struct PollingPolicy {
  /// How long a progress thread polls before it asks this policy [s]. The one of messages polls only shortly:
  /// when it has delivered a message, the program needs the core.
  static constexpr double kCollectivesSpin = 20e-6, kMessagesSpin = 1e-6;

  std::atomic<bool> program_computes = false;  ///< the program needs the core
  std::atomic<int> pending_collectives = 0;    ///< submitted to the progress thread and not finished
  std::atomic<int> pending_loads = 0;          ///< of input, started and not finished

  bool may_poll_for_collectives() const { return !program_computes.load(std::memory_order_relaxed); }
  /// Collectives go first: the message thread polls only while no collective is pending.
  bool may_poll_for_messages() const {
    return may_poll_for_collectives() && pending_collectives.load(std::memory_order_relaxed) == 0;
  }
  /// Gives the core to the thread that loads input, if one is under way. That thread wakes when a read has
  /// ended; a polling thread with the same wakeup priority would keep it waiting for the scheduler's next
  /// tick, up to 4 ms.
  void yield_to_loads() const;
};

/// Marks the program as computing for the lifetime of this object, also inside another one. CompletionQueue
/// clears the mark while the program waits.
class ComputeScope {
 public:
  /// @param polling  policy of the rank's core; null: nothing is marked
  explicit ComputeScope(PollingPolicy* polling)
      : polling_(polling), before_(polling != nullptr && polling->program_computes.exchange(true)) {}
  ComputeScope(const ComputeScope&) = delete;
  ComputeScope& operator=(const ComputeScope&) = delete;
  ~ComputeScope() {
    if (polling_ != nullptr) polling_->program_computes = before_;
  }

 private:
  PollingPolicy* polling_;
  bool before_;
};

/// @param date  on CLOCK_MONOTONIC [s]
inline void sleep_until(double date) {
  const double whole = std::floor(date);
  const timespec time{static_cast<time_t>(whole), static_cast<long>(1e9 * (date - whole))};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, nullptr) != 0) {
  }
}

/// Asks for another time slice of the calling thread, and of threads that it starts, than the default of some
/// milliseconds. Needs no privilege. Linux before 6.12 does not support it; there the call has no effect.
void set_time_slice(double seconds);

/// Makes the calling thread run as soon as it is woken, ahead of a thread that computes on the same core.
/// A thread that was woken every 5 ms on a computing core began 0.2 to 0.3 ms late on average without this
/// call, at times 4 ms; with it, 0.03 to 0.05 ms. It sets the time slice.
void raise_wakeup_priority();

/// Keeps every core of this machine awake for the lifetime of this object, by one spinning thread a core at
/// the lowest priority, which yields to every other thread. An idle virtual core halts, and its host wakes it
/// late: ranks that sleep, and the timers of rate-limited links, then lose some milliseconds in each
/// exchange. The threads end some time after this object: where other programs use all cores, a thread of the
/// lowest priority runs only every few seconds.
class AwakeCores {
 public:
  AwakeCores();
  AwakeCores(const AwakeCores&) = delete;
  AwakeCores& operator=(const AwakeCores&) = delete;
  ~AwakeCores();

 private:
  std::shared_ptr<std::atomic<bool>> stop_;
};

/// Queue of operations that progress threads have finished. Only the thread that runs the program takes
/// operations out and completes them.
class CompletionQueue {
 public:
  /// @param polling  policy of the rank's core, which is marked as free while the program waits; may be null
  /// @param on_wait  called when the program begins to wait; may be empty
  explicit CompletionQueue(PollingPolicy* polling = nullptr, std::function<void()> on_wait = {})
      : polling_(polling), on_wait_(std::move(on_wait)) {}

  void post(Pending operation);
  bool empty();
  /// Waits for the next finished operation. Returns null after one second without any.
  Pending next();
  /// Waits for the next finished operation, however long it takes, and throws its error if it has one.
  void await_next();

 private:
  bool wait(std::unique_lock<std::mutex>& lock);

  PollingPolicy* polling_;
  bool program_waits_ = false;  ///< the program waits here and was marked as computing before
  std::function<void()> on_wait_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Pending> completed_;
};

/// A thread that executes submitted functions in order while the submitting thread goes on. It makes
/// communication overlap with computation, because MPI alone makes no progress outside its calls.
class ProgressThread {
 public:
  /// @param heartbeat  counter, incremented at least once a second while the thread is idle and set to 0 when
  ///                   it ends; may be null
  /// @param polling    policy of the rank's core; its `pending_collectives` counts what was submitted here
  /// and
  ///                   is not finished; may be null
  explicit ProgressThread(std::atomic<std::uint64_t>* heartbeat = nullptr, PollingPolicy* polling = nullptr);
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;
  ~ProgressThread();  ///< finishes all submitted functions first

  void submit(std::function<void()> work);
  /// Forgets all submitted functions that have not begun.
  void discard();

 private:
  void run();

  std::atomic<std::uint64_t>* heartbeat_;
  PollingPolicy* polling_;
  std::mutex mutex_;
  std::condition_variable submitted_;
  std::deque<std::function<void()>> queue_;
  bool closing_ = false;
  std::thread thread_;  // declared last: it uses the other members
};

}  // namespace stepcast
