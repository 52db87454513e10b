#pragma once

#include <cstddef>

#include "sim/heap.hpp"
#include "sim/rising_row.hpp"

namespace stepcast {

/// Items in order of `before`, the first one on top. Most items of a simulation are added in the order in
/// which they leave: those lie in a row, all others in a heap. Where an item lies changes no order.
template <class Item>
class RisingQueue {
 public:
  bool empty() const { return heap_.empty() && row_.empty(); }
  const Item& top() const { return in_row() ? row_.front() : heap_.top(); }
  /// Mostly the one that comes so many after the top; any other that is there, else.
  const Item& ahead(std::size_t count) const { return row_.empty() ? heap_.top() : row_.ahead(count); }

  void push(const Item& item) {
    if (row_.empty() || !item.before(row_.back())) {
      row_.push(item);
    } else {
      heap_.push(item);
    }
  }

  void pop() {
    if (in_row()) {
      row_.drop();
    } else {
      heap_.pop();
    }
  }

 private:
  bool in_row() const { return heap_.empty() || (!row_.empty() && row_.front().before(heap_.top())); }

  RisingRow<Item> row_;
  Heap<Item> heap_;
};

}  // namespace stepcast
