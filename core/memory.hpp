#pragma once

#include <sys/mman.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define STEPCAST_ADDRESS_SANITIZER  // clang
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define STEPCAST_ADDRESS_SANITIZER  // gcc
#endif

namespace stepcast {

/// Memory pool for small objects that are created and destroyed by the million (operations, coroutine
/// frames).
///
/// The last freed block of a size is allocated first, so that it is still in the cache, and all blocks lie in
/// few large pages. Memory is never returned to the system. Each thread has its own pool. Under
/// AddressSanitizer the pool is plain new and delete.
class FreeLists {
 public:
  static void* allocate(std::size_t bytes) {
    const std::size_t size = rounded(bytes);
    if (size > kLargest) return ::operator new(bytes);
    Free*& list = lists().free_[size / kGrain];
    if (list == nullptr) return lists().carve(size);
    Free* first = list;
    list = first->next;
    __builtin_prefetch(list, 1);  // the next allocation returns it
    return first;
  }

  static void deallocate(void* held, std::size_t bytes) noexcept {
    const std::size_t size = rounded(bytes);
    if (size > kLargest) return ::operator delete(held);
    Free*& list = lists().free_[size / kGrain];
    list = new (held) Free{list};
  }

 private:
#if defined(STEPCAST_ADDRESS_SANITIZER)
  static constexpr std::size_t kLargest = 0;
#else
  static constexpr std::size_t kLargest = 1024;
#endif
  static constexpr std::size_t kGrain = 64;              // a cache line
  static constexpr std::size_t kSmallBlock = 64 << 10;   // the first block of a thread
  static constexpr std::size_t kLargeBlock = 2U << 20U;  // a large page

  struct Free {
    Free* next;
  };

  static constexpr std::size_t rounded(std::size_t bytes) {
    return (bytes + kGrain - 1) / kGrain * kGrain;
  }

  static FreeLists& lists() {
    static thread_local FreeLists all;
    return all;
  }

  void* carve(std::size_t size) {
    if (left_ < size) {
      const bool first = block_ == nullptr;
      left_ = first ? kSmallBlock : kLargeBlock;
      block_ = static_cast<std::byte*>(::operator new(left_, std::align_val_t(left_)));
      if (!first) madvise(block_, left_, MADV_HUGEPAGE);  // advice only: it may be refused
    }
    void* carved = block_;
    block_ += size;
    left_ -= size;
    return carved;
  }

  std::array<Free*, 1024 / kGrain + 1> free_{};
  std::byte* block_ = nullptr;
  std::size_t left_ = 0;
};

/// Standard allocator over FreeLists, for std::allocate_shared.
template <class T>
struct PoolAllocator {
  using value_type = T;

  PoolAllocator() = default;
  template <class Other>
  PoolAllocator(const PoolAllocator<Other>&) {}

  T* allocate(std::size_t count) { return static_cast<T*>(FreeLists::allocate(count * sizeof(T))); }
  void deallocate(T* held, std::size_t count) { FreeLists::deallocate(held, count * sizeof(T)); }

  template <class Other>
  bool operator==(const PoolAllocator<Other>&) const {
    return true;
  }
};

/// An array of zeros that takes memory only where it is written, because the system maps zero pages on first
/// access. It suits tables over all links of a cluster, of which a run uses few.
template <class Number>
class ZeroedArray {
  static_assert(std::is_trivial_v<Number>);

 public:
  explicit ZeroedArray(std::size_t count)
      : numbers_(static_cast<Number*>(std::calloc(count > 0 ? count : 1, sizeof(Number)))) {
    if (!numbers_) throw std::bad_alloc();
  }

  Number& operator[](std::size_t index) { return numbers_.get()[index]; }
  const Number& operator[](std::size_t index) const { return numbers_.get()[index]; }

 private:
  struct Free {
    void operator()(Number* numbers) const { std::free(numbers); }
  };
  std::unique_ptr<Number, Free> numbers_;
};

}  // namespace stepcast
