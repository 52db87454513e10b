#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "sim/heap.hpp"
#include "sim/rising_row.hpp"

namespace stepcast {

/// Something to happen. `order`: sequence number, then a place that its owner knows; of equal dates the
/// smaller first.
struct Event {
  using Key = unsigned __int128;

  double date;
  std::uint64_t order;

  /// Dates are never negative, and such numbers are in the order of their bits: one comparison, no branch.
  Key key() const { return static_cast<Key>(std::bit_cast<std::uint64_t>(date)) << 64U | order; }
  bool before(const Event& other) const { return key() < other.key(); }
};

/// Events in the order of their keys. Those of a simulation are asked for in a few rising rows (latencies;
/// steps of computing; ends of flows): a new one is added to the first row whose last event comes
/// before it, which costs a few comparisons. What fits nowhere lies in a heap. Where an event lies changes no
/// order.
class EventQueue {
 public:
  bool empty() const { return size_ == 0; }
  const Event& top() const { return least_ < kRows ? rows_[least_].front() : heap_.top(); }
  /// One that comes soon after the top, in its row; none: not known.
  const Event* soon() const { return least_ < kRows ? &rows_[least_].ahead(kSoon) : nullptr; }

  void push(const Event& event) {
    const Event::Key key = event.key();
    std::size_t chosen = 0;
    while (chosen < kRows && lasts_[chosen] > key) ++chosen;
    if (chosen == kRows) {
      heap_.push(event);
    } else {
      rows_[chosen].push(event);
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
      heap_.pop();
      firsts_[kRows] = heap_.empty() ? kNever : heap_.top().key();
    } else {
      RisingRow<Event>& row = rows_[least_];
      row.drop();
      firsts_[least_] = row.empty() ? kNever : row.front().key();
      if (row.empty()) lasts_[least_] = 0;
    }
    if (firsts_[least_] > second_) find_least();
  }

 private:
  static constexpr std::size_t kRows = 6, kSoon = 3;
  static constexpr Event::Key kNever = ~Event::Key{0};

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

  static constexpr std::array<Event::Key, kRows + 1> never() {
    std::array<Event::Key, kRows + 1> keys{};
    keys.fill(kNever);
    return keys;
  }

  std::size_t size_ = 0, least_ = 0;  ///< row of the top; kRows: the heap
  std::array<Event::Key, kRows + 1> firsts_ = never();
  Event::Key second_ = kNever;  ///< the least of the firsts of the other rows
  std::array<Event::Key, kRows> lasts_{};
  std::array<RisingRow<Event>, kRows> rows_;
  Heap<Event> heap_;
};

}  // namespace stepcast
