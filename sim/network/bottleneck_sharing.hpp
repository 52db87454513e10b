#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "core/memory.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/event_queue.hpp"

namespace stepcast {

/// Approximate sharing of links among flows at little cost per event, for runs of very many messages.
///
/// A flow runs at the smallest share that any of its links gives it, share = bandwidth / flows on the link,
/// and is queued at that link, its bottleneck. A link counts the bytes that it has served to each of its
/// flows, so arrivals and departures update no other flow. Flows choose their bottleneck again when the
/// number of flows on one of their links has changed by a quarter. The result is exact if each flow keeps one
/// bottleneck. Otherwise bandwidth that flows with another bottleneck do not use is lost, whereas max-min
/// sharing gives it to other flows. docs/explanation/simulation.md gives the error.
class BottleneckSharing {
 public:
  BottleneckSharing(Engine& engine, int links, std::function<BytesPerSecond(int link)> bandwidth);

  /// Moves `size` over all of `links` at once, then calls `done`. The flow has no latency.
  void start_flow(const std::vector<int>& links, Bytes size, Engine::Callback done);

  /// Stores a flow that starts later, after its latency, and returns its number. `start_flow` or
  /// `start_flow_at` starts it.
  std::uint32_t prepare_flow(std::span<const int> links, Bytes size, Engine::Callback&& done);
  void start_flow(std::uint32_t prepared);
  /// Starts a prepared flow at `date` [s]. Consecutive calls with the same date share one event, as long as
  /// nothing else is scheduled between them.
  void start_flow_at(double date, std::uint32_t prepared);

  std::int64_t flows() const { return flows_; }  ///< Number of flows started so far.

 private:
  struct Hop {
    int queue;
    std::uint32_t slot;  ///< index of the flow in Queue::flows
  };
  /// The hops of a flow; the first kInline need no allocation.
  class Hops {
   public:
    void assign(std::size_t count) {
      count_ = count;
      if (count > std::max<std::size_t>(kInline, capacity_)) {
        allocated_ = std::make_unique<Hop[]>(count);
        capacity_ = count_;
      }
    }
    Hop* begin() { return count_ > kInline ? allocated_.get() : inline_; }
    Hop* end() { return begin() + count_; }
    const Hop* begin() const { return count_ > kInline ? allocated_.get() : inline_; }
    const Hop* end() const { return begin() + count_; }

   private:
    static constexpr std::size_t kInline = 2;
    Hop inline_[kInline]{};
    std::uint32_t count_ = 0, capacity_ = 0;
    std::unique_ptr<Hop[]> allocated_;
  };

  /// Aligned to two cache lines, which hold one flow.
  struct alignas(128) Flow {
    Hops hops;
    double finish = 0;  ///< value of Queue::served at which the flow ends; before the start its size [B]
    std::uint64_t sequence = 0;  ///< sequence number of its valid queue entry
    int queue = 0;               ///< its bottleneck
    std::uint32_t next = 0;      ///< next flow of the batch that starts in the same event
    Engine::Callback done;
  };
  struct Entry {
    double finish;
    std::uint64_t sequence;  ///< the entry is stale if the flow's sequence number differs
    std::uint32_t flow;
    bool before(const Entry& other) const {
      return finish != other.finish ? finish < other.finish : sequence < other.sequence;
    }
  };
  static constexpr std::uint32_t kNoFlow = ~std::uint32_t{0};

  /// A flow as one of its links stores it: enough to find the flow's bottleneck without reading the flow
  /// itself.
  struct LinkFlow {
    std::uint32_t flow = kNoFlow;
    int bottleneck = 0;  ///< queue that the flow is in
    int other = 0;       ///< queue of the flow's other link, if it has two
    /// Position of this link on the flow's route: the only link, the first or second of two, one of more.
    enum : int { alone, first, second, many } place = alone;
  };

  /// A link that flows use or have used.
  struct Queue {
    double bandwidth = 0;
    double served = 0;                   ///< bytes served to each queued flow up to the date `since` [B]
    double since = 0;                    ///< [s]
    std::vector<LinkFlow> flows;         ///< flows that use the link, and gaps (kNoFlow)
    std::size_t count = 0;               ///< number of flows that use the link
    std::size_t departed = 0;            ///< flows that ended since the last reassignment of bottlenecks
    MonotoneQueue<Entry> entries;        ///< flows whose bottleneck is this link, by end
    std::size_t count_when_checked = 0;  ///< `count` at the last reassignment of bottlenecks
    double armed = 1e300;                ///< date of the next call of finish_due_flows [s]
    std::uint32_t generation = 0;

    /// True if the link's flows should choose their bottlenecks again: their number has changed by more than
    /// a quarter since the last time, or more than twice the present number have ended.
    bool has_changed() const {
      const auto [less, more] = std::minmax(count, count_when_checked);
      return more - less > less / kQuarter || departed > 2 * count;
    }
    static constexpr std::size_t kQuarter = 4;
  };

  Queue& queue(int number) { return queues_[number]; }
  double& share(int number) { return shares_[number]; }
  void update_share(int number) {
    const Queue& changed = queue(number);
    share(number) = changed.bandwidth / changed.count;
  }
  int queue_of(int link);
  void start_batch(std::uint32_t first);
  void join(std::uint32_t flow);
  void update_served(int queue);
  int bottleneck_of(const Flow& flow) const;
  int bottleneck_of(const LinkFlow& link_flow, int at) const;
  LinkFlow link_flow_of(std::uint32_t flow, std::size_t hop) const;
  void enqueue(std::uint32_t flow, int queue, double bytes);
  void move_slot(int queue, std::size_t from, std::size_t to);
  void close_gaps(int queue);
  void reassign_bottlenecks(int queue);
  void arm(int queue);
  void finish_due_flows(int queue, std::uint32_t generation);
  void leave(std::uint32_t flow, int skip_arming);
  void end_at_once(std::uint32_t flow);
  bool is_stale(const Entry& place) const { return pool_[place.flow].sequence != place.sequence; }
  void prefetch_next(const MonotoneQueue<Entry>& entries) const;
  void prefetch_routes(const std::vector<LinkFlow>& flows, std::size_t slot) const;
  std::uint32_t free_flow();

  Engine& engine_;
  std::function<BytesPerSecond(int link)> bandwidth_;
  ZeroedArray<int> queue_numbers_;  ///< by link of the platform: its index in queues_ plus one; 0 if unused
  std::vector<Queue> queues_;
  /// Bandwidth per flow of each queue [B/s]; separate because it is read most often.
  std::vector<double> shares_;
  std::vector<Flow> pool_;
  std::vector<std::uint32_t> free_;
  std::uint64_t sequence_ = 0;
  std::int64_t flows_ = 0;
  /// The last batch of flows that start together, as long as another flow may be added to it.
  struct Batch {
    double date = -1;
    std::uint64_t calls_of_at = 0;  ///< Engine::calls_of_at when a flow was last added
    std::uint32_t last = 0;
  };
  Batch batch_;
};

}  // namespace stepcast
