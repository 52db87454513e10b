#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stepcast {

/// Items in order of `before`, the first one on top. Most items of a simulation are added in the order in
/// which they leave: those lie in a plain list (`push_rising`); all others in a heap with four children a
/// node, half as deep as a binary one. Which of the two an item lies in changes no order.
template <class Item>
class RisingQueue {
 public:
  bool empty() const { return first_ == list_.size() && heap_.empty(); }

  const Item& top() const {
    if (first_ == list_.size()) return heap_.front();
    return heap_.empty() || list_[first_].before(heap_.front()) ? list_[first_] : heap_.front();
  }

  void push_rising(const Item& item) {
    if (first_ < list_.size() && item.before(list_.back())) return push(item);
    if (first_ == list_.size()) {
      list_.clear();
      first_ = 0;
    }
    list_.push_back(item);
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
    if (&top() != heap_.data()) return pop_list();
    const Item last = heap_.back();
    heap_.pop_back();
    if (heap_.empty()) return;
    std::size_t at = 0;
    for (;;) {
      const std::size_t child = kChildren * at + 1, end = std::min(child + kChildren, heap_.size());
      if (child >= end) break;
      std::size_t least = child;
      for (std::size_t other = child + 1; other < end; ++other) {
        if (heap_[other].before(heap_[least])) least = other;
      }
      if (!heap_[least].before(last)) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = last;
  }

 private:
  static constexpr std::size_t kChildren = 4, kLongHead = 1024;

  void pop_list() {
    if (++first_ < kLongHead || 2 * first_ < list_.size()) return;
    list_.erase(list_.begin(), list_.begin() + static_cast<std::ptrdiff_t>(first_));
    first_ = 0;
  }

  std::vector<Item> list_;  ///< in order from `first_` on
  std::size_t first_ = 0;
  std::vector<Item> heap_;
};

}  // namespace stepcast
