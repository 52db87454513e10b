#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stepcast {

/// Items of which the first by `before` lies on top: a heap with four children a node, half as deep as a
/// binary one.
template <class Item>
class Heap {
 public:
  bool empty() const { return items_.empty(); }
  const Item& top() const { return items_.front(); }

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

}  // namespace stepcast
