#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {

/// Priority queue by `Item::before`: a heap with four children per node, which is half as deep as a binary
/// heap.
template <class Item>
class Heap {
 public:
  bool empty() const { return items_.empty(); }
  const Item& top() const { return items_.front(); }
  void clear() { items_.clear(); }

  void push(const Item& item) {
    std::size_t at = items_.size();
    items_.push_back(item);
    for (; at > 0; at = (at - 1) / kChildren) {
      const Item& parent = items_[(at - 1) / kChildren];
      if (!item.before(parent)) break;
      items_[at] = parent;
    }
    items_[at] = item;
  }

  void pop() {
    const Item last = items_.back();
    items_.pop_back();
    if (items_.empty()) return;
    std::size_t at = 0;
    for (;;) {
      const std::size_t child = kChildren * at + 1, end = std::min(child + kChildren, items_.size());
      if (child >= end) break;
      std::size_t least = child;
      for (std::size_t other = child + 1; other < end; ++other)
        least = items_[other].before(items_[least]) ? other : least;
      if (!items_[least].before(last)) break;
      items_[at] = items_[least];
      at = least;
    }
    items_[at] = last;
  }

 private:
  static constexpr std::size_t kChildren = 4;

  std::vector<Item> items_;
};

/// First-in, first-out queue in contiguous memory.
template <class Item>
class MonotoneRun {
 public:
  bool empty() const { return items_.empty(); }
  const Item& front() const { return items_[first_]; }
  const Item& back() const { return items_.back(); }
  /// The item `count` places behind the first, or the last item if the queue is shorter.
  const Item& ahead(std::size_t count) const { return items_[std::min(first_ + count, items_.size() - 1)]; }

  void push(const Item& item) { items_.push_back(item); }

  void clear() {
    items_.clear();
    first_ = 0;
  }

  void pop_front() {
    if (++first_ == items_.size()) {
      clear();
    } else if (first_ >= kLongHead && 2 * first_ >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + first_);
      first_ = 0;
    }
  }

 private:
  static constexpr std::size_t kLongHead = 1024;

  std::vector<Item> items_;  ///< items before index `first_` have left the queue
  std::size_t first_ = 0;
};

/// Monotone priority queue by `Item::before`. A simulation adds most items in the order in which they leave:
/// those are appended to a run, and all others go into a heap. The order in which items leave does not depend
/// on where they are stored.
template <class Item>
class MonotoneQueue {
 public:
  bool empty() const { return heap_.empty() && run_.empty(); }
  const Item& top() const { return top_is_in_run() ? run_.front() : heap_.top(); }
  /// Prefetch hint: roughly the `count`-th item behind the top.
  const Item& ahead(std::size_t count) const { return run_.empty() ? heap_.top() : run_.ahead(count); }

  void clear() {
    run_.clear();
    heap_.clear();
  }

  void push(const Item& item) {
    if (run_.empty() || !item.before(run_.back())) {
      run_.push(item);
    } else {
      heap_.push(item);
    }
  }

  void pop() {
    if (top_is_in_run()) {
      run_.pop_front();
    } else {
      heap_.pop();
    }
  }

 private:
  bool top_is_in_run() const { return heap_.empty() || (!run_.empty() && run_.front().before(heap_.top())); }

  MonotoneRun<Item> run_;
  Heap<Item> heap_;
};

/// An entry of the event queue. `order` holds a sequence number in its high bits and the slot of the callback
/// in its low bits; events of equal date leave the queue by increasing `order`.
struct Event {
  using Key = unsigned __int128;

  double date;
  std::uint64_t order;

  /// Sort key. Dates are never negative, and the bit patterns of non-negative doubles sort like the numbers,
  /// so one comparison without a branch orders two events.
  Key key() const { return static_cast<Key>(std::bit_cast<std::uint64_t>(date)) << 64U | order; }
  bool before(const Event& other) const { return key() < other.key(); }
};

/// Priority queue of events by key. A simulation adds its events in a few increasing sequences (latencies,
/// compute passes, ends of flows), so an event is appended to the first run whose last event precedes it,
/// which costs a few comparisons; an event that fits no run goes into a heap. The order in which events leave
/// does not depend on where they are stored.
class EventQueue {
 public:
  bool empty() const { return size_ == 0; }
  const Event& top() const { return least_ < kRuns ? runs_[least_].front() : heap_.top(); }
  /// Prefetch hint: an event that follows soon after the top in the same run; null if the top is in the heap.
  const Event* upcoming() const { return least_ < kRuns ? &runs_[least_].ahead(kLookahead) : nullptr; }

  void push(const Event& event) {
    const Event::Key key = event.key();
    std::size_t chosen = 0;
    while (chosen < kRuns && lasts_[chosen] > key) ++chosen;
    if (chosen == kRuns) {
      heap_.push(event);
    } else {
      runs_[chosen].push(event);
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
    if (least_ == kRuns) {
      heap_.pop();
      firsts_[kRuns] = heap_.empty() ? kNever : heap_.top().key();
    } else {
      MonotoneRun<Event>& run = runs_[least_];
      run.pop_front();
      firsts_[least_] = run.empty() ? kNever : run.front().key();
      if (run.empty()) lasts_[least_] = 0;
    }
    if (firsts_[least_] > second_) find_least();
  }

 private:
  static constexpr std::size_t kRuns = 6, kLookahead = 3;
  static constexpr Event::Key kNever = ~Event::Key{0};

  void find_least() {
    std::size_t found = 0;
    Event::Key least = firsts_[0], second = kNever;
    for (std::size_t i = 1; i <= kRuns; ++i) {
      const Event::Key key = firsts_[i];
      const bool less = key < least;
      second = std::min(second, less ? least : key);
      least = less ? key : least;
      found = less ? i : found;
    }
    least_ = found;
    second_ = second;
  }

  static constexpr std::array<Event::Key, kRuns + 1> never() {
    std::array<Event::Key, kRuns + 1> keys{};
    keys.fill(kNever);
    return keys;
  }

  std::size_t size_ = 0;
  std::size_t least_ = 0;  ///< index of the run that holds the top; kRuns stands for the heap
  std::array<Event::Key, kRuns + 1> firsts_ = never();
  Event::Key second_ = kNever;  ///< smallest of the first keys of all other runs and the heap
  std::array<Event::Key, kRuns> lasts_{};
  std::array<MonotoneRun<Event>, kRuns> runs_;
  Heap<Event> heap_;
};

}  // namespace stepcast
