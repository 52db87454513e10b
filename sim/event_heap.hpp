#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace stepcast {

/// Something to happen at a date. `order` is unique: of equal dates the smaller one comes first.
struct Event {
  double date;
  std::uint64_t order;

  bool before(const Event& other) const {
    return date != other.date ? date < other.date : order < other.order;
  }
};

/// A heap with four children a node: half as deep as a binary one, and the children of a node lie in one
/// cache line.
class EventHeap {
 public:
  bool empty() const { return events_.empty(); }
  const Event& top() const { return events_.front(); }

  void push(Event event) {
    std::size_t at = events_.size();
    events_.push_back(event);
    for (; at > 0; at = (at - 1) / kChildren) {
      const Event& parent = events_[(at - 1) / kChildren];
      if (!event.before(parent)) break;
      events_[at] = parent;
    }
    events_[at] = event;
  }

  void pop() {
    const Event last = events_.back();
    events_.pop_back();
    if (events_.empty()) return;
    std::size_t at = 0;
    for (;;) {
      const std::size_t first = kChildren * at + 1, end = std::min(first + kChildren, events_.size());
      if (first >= end) break;
      std::size_t least = first;
      for (std::size_t child = first + 1; child < end; ++child) {
        if (events_[child].before(events_[least])) least = child;
      }
      if (!events_[least].before(last)) break;
      events_[at] = events_[least];
      at = least;
    }
    events_[at] = last;
  }

 private:
  static constexpr std::size_t kChildren = 4;
  std::vector<Event> events_;
};

}  // namespace stepcast
