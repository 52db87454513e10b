#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace stepcast {

/// Items that leave in the order in which they were added, in one piece of memory.
template <class Item>
class RisingRow {
 public:
  bool empty() const { return items_.empty(); }
  const Item& front() const { return items_[first_]; }
  const Item& back() const { return items_.back(); }
  /// The one that comes so many after the first; the last one, where there are fewer.
  const Item& ahead(std::size_t count) const { return items_[std::min(first_ + count, items_.size() - 1)]; }

  void push(const Item& item) { items_.push_back(item); }

  void drop() {
    if (++first_ == items_.size()) {
      items_.clear();
      first_ = 0;
    } else if (first_ >= kLongHead && 2 * first_ >= items_.size()) {
      items_.erase(items_.begin(), items_.begin() + static_cast<std::ptrdiff_t>(first_));
      first_ = 0;
    }
  }

 private:
  static constexpr std::size_t kLongHead = 1024;

  std::vector<Item> items_;  ///< those before `first_` have left
  std::size_t first_ = 0;
};

}  // namespace stepcast
