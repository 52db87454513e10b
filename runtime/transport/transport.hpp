#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "strategies/collectives/algorithm_choice.hpp"
#include "strategies/collectives/schedule.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

class CoreToCoreLatency;

/// Non-blocking streams of floats between every pair of ranks of a run, like gloo's transport pairs. The
/// floats of one pair arrive in the order in which they were sent. Only `wait` blocks, so one thread can
/// serve all peers. The class is abstract because a run uses either shared memory or TCP sockets.
class Transport {
 public:
  Transport(RankId rank, int ranks) : rank_(rank), ranks_(ranks) {}
  Transport(const Transport&) = delete;
  Transport& operator=(const Transport&) = delete;
  virtual ~Transport() = default;

  /// Makes a `wait` of another thread return, or the next `wait` if there is none now.
  virtual void wake() = 0;
  /// Wakes a thread that sleeps in `wait`, so that it polls instead. Does nothing where `wait` cannot poll.
  virtual void wake_to_poll() {}

  /// Sets a counter that `wait` increments when it begins and once a second while it waits, so that a monitor
  /// can tell waiting from hanging; null: no counter.
  void count_waits(std::atomic<std::uint64_t>* counter) { wait_counter_ = counter; }

  /// Sets the probe of the latency between the ranks' cores, for functions that measure; null: the latency
  /// does not matter or cannot be measured.
  void set_core_latency(CoreToCoreLatency* probe) { core_latency_ = probe; }
  CoreToCoreLatency* core_latency() const { return core_latency_; }

  RankId rank() const { return rank_; }
  bool is_rank_0() const { return rank_ == RankId{0}; }
  int ranks() const { return ranks_; }
  /// The rank `distance` places after this one, where rank 0 follows the last one. @param distance  >=
  /// -ranks()
  RankId rank_after(int distance) const { return RankId((rank_.value + distance + ranks_) % ranks_); }

  /// Sends as many of `count` floats to `peer` as fit into the send buffer now.
  /// @return how many floats were taken, 0 to `count`
  virtual std::int64_t send_some(RankId peer, const float* data, std::int64_t count) = 0;
  /// Receives as many of `count` floats as have arrived from `peer`, and adds them to `target` or replaces
  /// it.
  /// @return how many floats were received, 0 to `count`
  virtual std::int64_t receive_some(RankId peer, float* target, std::int64_t count, OnReceive on_receive) = 0;
  /// Returns when a rank of `sending_to` can probably take more floats, when floats have probably arrived
  /// from a rank of `receiving_from`, after `wake`, or after one second. Yields the core.
  virtual void wait(const std::vector<RankId>& sending_to, const std::vector<RankId>& receiving_from) = 0;

 protected:
  void count_wait() {
    if (wait_counter_ != nullptr) wait_counter_->fetch_add(1, std::memory_order_relaxed);
  }

 private:
  RankId rank_;
  int ranks_;
  std::atomic<std::uint64_t>* wait_counter_ = nullptr;
  CoreToCoreLatency* core_latency_ = nullptr;
};

/// A peer closed its connection. The launcher's heartbeat monitor usually knows the reason, so this error is
/// reported only if the launcher has none.
struct PeerDisconnected : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Blocking send and receive of `count` floats. @throws PeerDisconnected
void send(Transport& transport, RankId peer, const float* data, std::int64_t count);
void receive(Transport& transport, RankId peer, float* target, std::int64_t count);

/// Returns when all ranks have called it. Dissemination barrier: ceil(log2 P) rounds of one float.
/// Source: D. Hensgen, R. Finkel, U. Manber, "Two algorithms for barrier synchronization", Int. J. Parallel
/// Programming 17 (1988).
void barrier(Transport& transport);
/// The same among the ranks of a group, which call it.
void barrier(Transport& transport, const std::vector<RankId>& group);

// Small collectives that control a run: they exchange a few numbers and are never measured. All ranks call
// them.

/// The values of every rank, indexed by rank. Only rank 0 receives them; the other ranks get an empty list.
/// Lists of different ranks may differ in length.
std::vector<std::vector<double>> gather_on_rank_0(Transport& transport, const std::vector<double>& own);

/// The text of every rank, indexed by rank, on rank 0; empty on the other ranks.
std::vector<std::string> gather_texts_on_rank_0(Transport& transport, const std::string& own);

/// The value of rank 0, rounded to float.
double broadcast_from_rank_0(Transport& transport, double value);

/// The largest value of all ranks, rounded to float; every rank gets it.
double max_over_ranks(Transport& transport, double own);

/// All-reduce (sum, in place) by a library such as MPI.
struct LibraryAllReduce {
  std::string name = {};                 ///< of the library, for tables
  Algorithm algorithm = Algorithm::mpi;  ///< value of `all_reduce` whose sums the library makes
  /// Sums over `ranks` (ranks of the run), all of which call it in the same order; empty: no library.
  std::function<void(std::span<float> values, const std::vector<RankId>& ranks)> sum = {};
};

}  // namespace stepcast
