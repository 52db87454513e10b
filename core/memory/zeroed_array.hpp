#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace stepcast {

/// An array of zeros that takes memory only where it is written, because the system maps zero pages on first
/// access. It suits tables over all links of a cluster, of which a run uses few.
template <class Number>
class ZeroedArray {
  static_assert(std::is_arithmetic_v<Number>);

 public:
  explicit ZeroedArray(std::size_t count)
      : numbers_(static_cast<Number*>(std::calloc(count > 0 ? count : 1, sizeof(Number)))) {
    if (!numbers_) throw std::bad_alloc();
  }

  Number& operator[](std::size_t index) { return numbers_.get()[index]; }

 private:
  struct Free {
    void operator()(Number* numbers) const { std::free(numbers); }
  };
  std::unique_ptr<Number, Free> numbers_;
};

}  // namespace stepcast
