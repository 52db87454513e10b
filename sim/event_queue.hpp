#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {

/// Something to happen. `order`: sequence number, then a place that its owner knows; of equal dates the
/// smaller first.
struct Event {
  using Key = unsigned __int128;

  double date;
  std::uint64_t order;

  /// Dates are never negative, and such numbers are in the order of their bits: one comparison, no branch.
  Key key() const { return static_cast<Key>(std::bit_cast<std::uint64_t>(date)) << 64U | order; }
};

/// Events in the order of their keys. Those of a simulation are asked for in a few rising rows (latencies;
/// steps of computing; ends of flows): a new one is added to the first row whose last event comes
/// before it, which costs a few comparisons. What fits nowhere lies in a heap with four children a node.
/// Where an event lies changes no order.
class EventQueue {
 public:
  bool empty() const { return size_ == 0; }
  const Event& top() const {
    return least_ < kRows ? rows_[least_].events[rows_[least_].first] : heap_.front();
  }
  /// One that comes soon after the top, in its row; none: not known.
  const Event* soon() const {
    if (least_ == kRows) return nullptr;
    const Row& row = rows_[least_];
    return &row.events[std::min(row.first + kSoon, row.events.size() - 1)];
  }

  void push(const Event& event) {
    const Event::Key key = event.key();
    std::size_t chosen = 0;
    while (chosen < kRows && lasts_[chosen] > key) ++chosen;
    if (chosen == kRows) {
      push_heap(event);
    } else {
      rows_[chosen].events.push_back(event);
      lasts_[chosen] = key;
    }
    if (size_++ == 0 || key < firsts_[least_]) {
      if (chosen != least_) second_ = firsts_[least_];
      least_ = chosen;
    } else if (chosen != least_) {
      second_ = std::min(second_, key);
    }
    firsts_[chosen] = std::min(firsts_[chosen], key);
  }

  void pop() {
    --size_;
    if (least_ == kRows) {
      pop_heap();
      firsts_[kRows] = heap_.empty() ? kNever : heap_.front().key();
    } else {
      drop_first(least_);
    }
    if (firsts_[least_] > second_) find_least();
  }

 private:
  static constexpr std::size_t kRows = 6, kChildren = 4, kLongHead = 1024, kSoon = 3;
  static constexpr Event::Key kNever = ~Event::Key{0};

  /// In order from `first` on.
  struct Row {
    std::vector<Event> events;
    std::size_t first = 0;
  };

  void find_least() {
    std::size_t found = 0;
    Event::Key least = firsts_[0], second = kNever;
    for (std::size_t i = 1; i <= kRows; ++i) {
      const Event::Key key = firsts_[i];
      const bool less = key < least;
      second = std::min(second, less ? least : key);
      least = less ? key : least;
      found = less ? i : found;
    }
    least_ = found;
    second_ = second;
  }

  void drop_first(std::size_t number) {
    Row& row = rows_[number];
    if (++row.first == row.events.size()) {
      row.events.clear();
      row.first = 0;
      firsts_[number] = kNever;
      lasts_[number] = 0;
      return;
    }
    firsts_[number] = row.events[row.first].key();
    if (row.first < kLongHead || 2 * row.first < row.events.size()) return;
    row.events.erase(row.events.begin(), row.events.begin() + static_cast<std::ptrdiff_t>(row.first));
    row.first = 0;
  }

  void push_heap(const Event& event) {
    const Event::Key key = event.key();
    std::size_t at = heap_.size();
    heap_.push_back(event);
    for (; at > 0; at = (at - 1) / kChildren) {
      const Event& parent = heap_[(at - 1) / kChildren];
      if (key >= parent.key()) break;
      heap_[at] = parent;
    }
    heap_[at] = event;
  }

  void pop_heap() {
    const Event last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
    std::size_t at = 0;
    for (;;) {
      const std::size_t child = kChildren * at + 1, end = std::min(child + kChildren, heap_.size());
      if (child >= end) break;
      std::size_t least = child;
      for (std::size_t other = child + 1; other < end; ++other)
        least = heap_[other].key() < heap_[least].key() ? other : least;
      if (heap_[least].key() >= last.key()) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = last;
  }

  static constexpr std::array<Event::Key, kRows + 1> never() {
    std::array<Event::Key, kRows + 1> keys{};
    keys.fill(kNever);
    return keys;
  }

  std::size_t size_ = 0, least_ = 0;  ///< row of the top; kRows: the heap
  std::array<Event::Key, kRows + 1> firsts_ = never();
  Event::Key second_ = kNever;  ///< the least of the firsts of the other rows
  std::array<Event::Key, kRows> lasts_{};
  std::array<Row, kRows> rows_;
  std::vector<Event> heap_;
};

}  // namespace stepcast
