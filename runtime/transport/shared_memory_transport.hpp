#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/transport/transport.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

double seconds_now();  ///< on CLOCK_MONOTONIC

/// Lets threads of different processes of a machine sleep until another one has something for them: one flag
/// (futex) a rank, in memory that all ranks share. One thread of each rank sleeps; any thread may wake.
///
/// A rank's sleeping thread shares a core with the thread that computes. It takes far less of the core's time
/// if another core wakes it than if it polls from time to time: on a virtual core, the timer of one sleep
/// takes 25 us.
class WakeFlags {
 public:
  /// Bytes of zeroed, 64-byte aligned memory that `ranks` ranks need.
  static std::size_t bytes_for(int ranks);

  /// @param memory  of bytes_for bytes; it outlives this object
  /// @param rank    the rank whose thread sleeps here
  WakeFlags(void* memory, RankId rank);

  /// Returns when `ready` is true, when this rank was woken, or after `seconds`. `ready` is called once more
  /// after the rank is marked as sleeping, so that nothing is missed between that call and the sleep.
  /// @return false after `seconds`
  bool sleep(const std::function<bool()>& ready, double seconds);

  /// Wakes a rank that sleeps. What its `ready` looks at must have been changed before.
  void wake_sleeping(RankId rank);

  /// Makes this rank's `sleep` return, or the next one if it does not sleep now.
  void wake();

  bool is_sleeping() const;
  bool is_wake_requested() const { return wake_requested_.load(std::memory_order_relaxed); }

 private:
  struct Flag;

  void signal(RankId rank);

  Flag* flags_;
  RankId rank_;
  std::atomic<bool> wake_requested_ = false;
};

/// Memory that the ranks of one machine share: a ring buffer of floats for each ordered pair of ranks and a
/// wake-up flag for each rank. The usual rings are small enough to stay in the cache, so that a float crosses
/// main memory only in the ranks' own buffers.
struct SharedMemoryTransport {
  static constexpr std::int64_t kRing = 65536;  ///< floats; two such rings fit into a second-level cache

  /// Bytes of zeroed, 64-byte aligned memory that `ranks` ranks need. @param ring  floats of a ring, a
  /// multiple of 16
  static std::size_t bytes_for(int ranks, std::int64_t ring = kRing);
};

/// Where the rings and flags are.
struct RingBuffers {
  void* start = nullptr;  ///< of SharedMemoryTransport::bytes_for(ranks, ring) bytes
  std::int64_t ring = SharedMemoryTransport::kRing;  ///< floats of a ring
};

/// Transport over shared memory.
/// @param memory        it outlives the transport
/// @param spin_seconds  how long `wait` polls before it sleeps on the wake-up flag; 0: it never polls
/// @param may_poll      asked while `wait` polls longer than `spin_seconds` (one second at most): true keeps
/// it
///                      polling; empty: it sleeps after `spin_seconds`
std::unique_ptr<Transport> shared_memory_transport(const RingBuffers& memory, RankId rank, int ranks,
                                                   double spin_seconds, std::function<bool()> may_poll = {});

}  // namespace stepcast
