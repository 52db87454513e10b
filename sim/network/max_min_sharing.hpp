#pragma once

#include <boost/container/small_vector.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <stdexcept>
#include <vector>

#include "core/memory.hpp"
#include "sim/engine/engine.hpp"
#include "sim/engine/event_queue.hpp"

namespace stepcast {

/// Dates at which flows end, earliest first, and flows of equal date in the order in which they were added.
/// Flows that are added one after the other for the same date share one entry of the event queue, because the
/// messages of a round mostly end together.
class EndQueue {
 public:
  using Index = std::uint32_t;

  static constexpr int kFlowBits = 24;  ///< low bits of an order: the flow
  static constexpr Index kMaxFlow = (Index{1} << kFlowBits) - 1;
  static Index flow_of(std::uint64_t order) { return order & kMaxFlow; }

  bool empty() const { return queue_.empty(); }
  double date() const { return queue_.top().date; }  ///< of the first end [s]
  /// The first end: its sequence number, and its flow in the low bits.
  std::uint64_t order() const {
    const Group& first = groups_[first_group()];
    return first.orders[first.next];
  }

  /// Adds an end and returns its order, which is never 0.
  std::uint64_t add(double date, Index flow) {
    if (last_ == kNoGroup || groups_[last_].date != date) open(date);
    const std::uint64_t order = ++sequence_ << kFlowBits | flow;
    groups_[last_].orders.push_back(order);
    return order;
  }

  /// Removes the first end.
  void pop() {
    const Index number = first_group();
    Group& first = groups_[number];
    if (++first.next < first.orders.size()) return;
    queue_.pop();
    first.orders.clear();
    first.next = 0;
    free_.push_back(number);
    if (last_ == number) last_ = kNoGroup;
  }

 private:
  /// Ends of one date.
  struct Group {
    double date = 0;
    std::size_t next = 0;  ///< orders before this index have been removed
    std::vector<std::uint64_t> orders;
  };
  static constexpr Index kNoGroup = ~Index{0};

  Index first_group() const { return flow_of(queue_.top().order); }

  void open(double date) {
    if (free_.empty()) {
      if (groups_.size() > kMaxFlow) throw std::length_error("more dates at once than EndQueue holds");
      free_.push_back(groups_.size());
      groups_.emplace_back();
    }
    last_ = free_.back();
    free_.pop_back();
    groups_[last_].date = date;
    queue_.push({date, ++sequence_ << kFlowBits | last_});
  }

  std::uint64_t sequence_ = 0;
  EventQueue queue_;  ///< the groups by date; the low bits of `order` hold the group
  std::vector<Group> groups_;
  std::vector<Index> free_;
  Index last_ = kNoGroup;  ///< the group to which an end was added last
};

/// The call that the end of a flow makes: `call(owner, number)`. It stores nothing else, so that starting and
/// ending a message copies three words.
struct FlowEnd {
  void (*call)(void* owner, std::uint64_t number) = nullptr;
  void* owner = nullptr;
  std::uint64_t number = 0;

  void operator()() const { call(owner, number); }
};

/// Max-min fair sharing of links among flows, with the same result as SimGrid at less cost per flow: rates
/// are recomputed once for all changes of a date, and only for flows that these changes can reach over links
/// that may be saturated. It does not use SimGrid, so a process can have any number of these objects, each on
/// its own engine.
class MaxMinSharing {
 public:
  MaxMinSharing(Engine& engine, int links, std::function<BytesPerSecond(int link)> bandwidth);

  /// Moves `size` over all of `links` at once (a link listed k times carries k times as much), then calls
  /// `end` or `done`. The flow has no latency.
  /// @param max_rate  bandwidth of links that `links` leaves out because no other flow uses them [B/s]
  void start_flow(std::span<const int> links, Bytes size, const FlowEnd& end, double max_rate = kNever);
  void start_flow(std::span<const int> links, Bytes size, Engine::Callback&& done);

  /// Moves `size` at `rate` [B/s] from `date` [s] on, over links that no other flow uses until then.
  void start_alone(double date, Bytes size, double rate, const FlowEnd& end);

  std::int64_t flows() const { return flows_; }  ///< Number of flows started so far.
  std::size_t flows_on(int link) const {         ///< Number of flows that use a link now.
    const Index number = link_indices_[link];
    return number == 0 ? 0 : links_[number - 1].flows.size();
  }
  /// Number of flow starts and rate computations so far; each takes about 0.2 us of processor time.
  std::int64_t work() const { return work_; }
  void limit_work(std::int64_t max_work) {
    max_work_ = max_work;
  }  ///< More work than this throws TooMuchWork.
  struct TooMuchWork {};

 private:
  using Index = std::uint32_t;
  static constexpr double kNever = 1e300;  ///< a date or rate that is never reached

  struct Hop {
    Index link;  ///< index in links_
    Index slot;  ///< index of the flow in Link::flows
  };
  /// The part of a flow that the solver reads and writes: one cache line.
  struct alignas(64) Flow {
    double remaining = 0;     ///< bytes left to send at the date `since` [B]
    double since = 0;         ///< date of the last change of rate [s]
    double rate = 0;          ///< [B/s]
    double max_rate = 0;      ///< bandwidth of the flow's narrowest link [B/s]
    double end = 0;           ///< date when the flow ends at its present rate [s]
    double queued = 0;        ///< date of its valid entry in ends_; `end` may be later [s]
    std::uint64_t order = 0;  ///< order of its valid entry in ends_; 0: it has none
    Index hops = 0;           ///< number of its hops
  };
  /// A link that flows use or have used: one cache line. Most links that are not shared have one flow at a
  /// time.
  struct alignas(64) Link {
    double bandwidth = 0;
    double max_demand = 0;  ///< sum of Flow::max_rate over its flows [B/s]
    boost::container::small_vector<Index, 2> flows;
    double unassigned = 0;  ///< while rates are computed: bandwidth left for flows without a rate [B/s]
    Index unfixed = 0;      ///< while rates are computed: number of flows without a rate
  };
  /// Bits of link_states_ and flow_states_. A link is full if its flows could use more than its bandwidth.
  /// While rates are computed, reached links and flows are affected, and fixed flows have a rate.
  enum State : std::uint8_t { kFull = 1, kReached = 2, kFixed = 4 };
  /// The fair share of a link; links of equal share leave the queue in an order that depends on the order of
  /// insertion alone.
  struct Share {
    double rate;
    Index link;
    bool before(const Share& other) const { return rate < other.rate; }
  };

  Index link_of(int link);
  Index free_flow(std::size_t hops);
  void widen(std::size_t hops);
  void call_kept(std::uint64_t number);
  std::span<Hop> hops_of(Index flow) { return {hops_.data() + flow * hops_per_flow_, pool_[flow].hops}; }
  static bool is(State state, std::uint8_t states) { return (states & state) != 0; }
  bool crosses_full_link(Index flow);
  void set_demand(Index link, double max_demand);
  void remove(Index flow);
  void request_sharing();
  void share_out();
  void reach(Index flow);
  void reach_link(Index link);
  void fill();
  const Share* most_contended_link();
  void fix(Index flow, double rate);
  void fix_in_links(Index flow, double rate);
  void queue_end(Index flow);
  void skip_stale_ends();
  void arm();
  void finish_due_flows();

  Engine& engine_;
  std::function<BytesPerSecond(int link)> bandwidth_;
  ZeroedArray<Index> link_indices_;  ///< by link of the platform: its index in links_ plus one; 0 if unused
  std::vector<Link> links_;
  std::vector<Flow> pool_;
  /// States by link and by flow, apart from links_ and pool_: a byte is mostly all that is read of a link
  /// that is not full and of a flow that is reached again.
  std::vector<std::uint8_t> link_states_, flow_states_;
  std::vector<FlowEnd> calls_;  ///< by flow
  std::vector<Hop> hops_;       ///< of flow i: from i x hops_per_flow_ on
  std::size_t hops_per_flow_ = 4;
  std::vector<Index> free_;
  EndQueue ends_;
  std::vector<FlowEnd> done_;                         ///< of the flows that end at the present date
  std::vector<Engine::Callback> kept_;                ///< of the flows that were started with a callback
  std::vector<std::uint64_t> free_kept_;              ///< unused entries of kept_
  double armed_ = kNever;                             ///< date of the next call of finish_due_flows [s]
  bool sharing_requested_ = false;                    ///< share_out is scheduled for the present date
  std::vector<Index> started_flows_, changed_links_;  ///< changes since the last call of share_out
  std::vector<Index> reached_flows_, reached_links_;  ///< affected by these changes
  MonotoneQueue<Share> shares_;
  std::int64_t flows_ = 0, work_ = 0;
  std::int64_t max_work_ = std::numeric_limits<std::int64_t>::max();
};

}  // namespace stepcast
