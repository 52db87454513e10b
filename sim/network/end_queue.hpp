#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

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
  static Index flow_of(std::uint64_t order) { return static_cast<Index>(order & kMaxFlow); }

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
      free_.push_back(static_cast<Index>(groups_.size()));
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

}  // namespace stepcast
