#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stepcast {

/// Items in order of `before`, the first one on top. Most items of a simulation are added in the order in
/// which they leave: those lie in a plain list (`push_rising`); all others in a heap with four children a
/// node, half as deep as a binary one. Where an item lies changes no order.
template <class Item>
class RisingQueue {
 public:
  bool empty() const { return heap_.empty() && list_.empty(); }

  const Item& top() const {
    if (heap_.empty()) return list_.front();
    return !list_.empty() && list_.front().before(heap_.front()) ? list_.front() : heap_.front();
  }

  /// Mostly the one that comes so many after the top; any other that is there, else.
  const Item& ahead(std::size_t count) const { return list_.empty() ? heap_.back() : list_.ahead(count); }

  void push_rising(const Item& item) {
    if (!list_.take(item)) push(item);
  }

  void push(const Item& item) {
    std::size_t at = heap_.size();
    heap_.push_back(item);
    for (; at > 0; at = (at - 1) / kChildren) {
      const Item& parent = heap_[(at - 1) / kChildren];
      if (!item.before(parent)) break;
      heap_[at] = parent;
    }
    heap_[at] = item;
  }

  void pop() {
    if (heap_.empty() || &top() != &heap_.front()) return list_.drop();
    pop_heap();
  }

 private:
  static constexpr std::size_t kChildren = 4;

  /// In order from `first_` on.
  class List {
   public:
    bool empty() const { return first_ == items_.size(); }
    const Item& front() const { return items_[first_]; }
    const Item& ahead(std::size_t count) const { return items_[std::min(first_ + count, items_.size() - 1)]; }

    bool take(const Item& item) {
      if (!empty() && item.before(items_.back())) return false;
      if (empty()) {
        items_.clear();
        first_ = 0;
      }
      items_.push_back(item);
      return true;
    }

    void drop() {
      if (++first_ < kLongHead || 2 * first_ < items_.size()) return;
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }

   private:
    static constexpr std::size_t kLongHead = 1024;

    std::vector<Item> items_;
    std::size_t first_ = 0;
  };

  void pop_heap() {
    const Item last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
    std::size_t at = 0;
    for (;;) {
      const std::size_t child = kChildren * at + 1, end = std::min(child + kChildren, heap_.size());
      if (child >= end) break;
      std::size_t least = child;
      for (std::size_t other = child + 1; other < end; ++other)
        least = heap_[other].before(heap_[least]) ? other : least;
      if (!heap_[least].before(last)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = last;
  }

  List list_;
  std::vector<Item> heap_;
};

}  // namespace stepcast
