#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace stepcast {

/// Lets threads of different processes of a machine sleep until another one has something for them: one flag
/// (futex) a rank, in memory that all ranks share. One thread of each rank sleeps; any thread may wake.
///
/// A sleeping thread that is woken by another core costs the core that it computes beside far less than one
/// that looks by itself from time to time: on a virtual core, the timer of one sleep takes 25 us.
class WakeFlags {
 public:
  /// Bytes of zeroed, 64-byte aligned memory that `ranks` ranks need.
  static std::size_t bytes_for(int ranks);

  /// @param memory  of bytes_for bytes; it outlives this object
  /// @param rank    the rank whose thread sleeps here
  WakeFlags(void* memory, int rank);

  /// Returns when `ready` is true, when this rank was woken, or after `seconds`. `ready` is called once more
  /// after the rank is marked as sleeping, so that nothing is missed between that call and the sleep.
  /// @return false after `seconds`
  bool sleep(const std::function<bool()>& ready, double seconds);

  /// Wakes a rank that sleeps. What its `ready` looks at must have been changed before.
  void wake_sleeping(int rank);

  /// Makes this rank's `sleep` return, or the next one if it does not sleep now.
  void wake();

  bool is_sleeping() const;
  bool is_wake_requested() const { return wake_requested_.load(std::memory_order_relaxed); }

 private:
  struct Flag;

  void signal(int rank);

  Flag* flags_;
  int rank_;
  std::atomic<bool> wake_requested_ = false;
};

}  // namespace stepcast
