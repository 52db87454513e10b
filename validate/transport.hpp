#pragma once

#include <atomic>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "strategies/collectives/schedule.hpp"

namespace stepcast {

class CoreDistance;

/// Carries floats between the ranks of a run, each pair in order. Nothing waits but `wait`, so one thread can
/// serve all peers. An abstract class because a run goes over shared memory or over sockets.
class Transport {
 public:
  Transport(int rank, int ranks) : rank_(rank), ranks_(ranks) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Ends a `wait` of another thread, or the next one.
  virtual void wake() = 0;
  /// Ends a `wait` of another thread that sleeps in it, where looking all the time would be quicker.
  virtual void hurry() {}

  /// Counted up when somebody waits and every second while it does, so that who watches can tell waiting from
  /// hanging; may be null.
  void count_waits(std::atomic<std::uint64_t>* counter) { waits_ = counter; }

  /// How far apart the ranks' cores are, for who measures; null: it does not matter or cannot be told.
  void look_at_cores(CoreDistance* cores) { cores_ = cores; }
  CoreDistance* cores() const { return cores_; }

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  /// Takes as many of `count` floats as there is room for on the way to `peer`; returns how many.
  virtual std::int64_t send_some(int peer, const float* data, std::int64_t count) = 0;
  /// Adds to or replaces as many of `count` floats as have come from `peer`; returns how many.
  virtual std::int64_t receive_some(int peer, float* target, std::int64_t count, Arrival arrival) = 0;
  /// Returns when, as far as can be seen, something can be sent to one of the first or has come from one of
  /// the second, or after a second. Yields the core.
  virtual void wait(const std::vector<int>& sending_to, const std::vector<int>& receiving_from) = 0;

 protected:
  void waited() {
    if (waits_ != nullptr) waits_->fetch_add(1, std::memory_order_relaxed);
  }

 private:
  int rank_, ranks_;
  std::atomic<std::uint64_t>* waits_ = nullptr;
  CoreDistance* cores_ = nullptr;
};

/// A peer ended its connection: who watches knows better why.
struct PeerGone : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// @throws PeerGone
void send(Transport& transport, int peer, const float* data, std::int64_t count);
void receive(Transport& transport, int peer, float* target, std::int64_t count);

/// Returns when all ranks have called it. Dissemination: ceil(log2 P) rounds of one float.
/// Source: D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization", Int. J. Parallel
/// Programming 17 (1988).
void barrier(Transport& transport);

}  // namespace stepcast
