#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace stepcast {

/// A call to make later: a move-only std::function<void()> whose inner storage holds what most calls capture,
/// so that an event of the simulation allocates nothing.
class alignas(64) Callback {
 public:
  Callback() = default;

  template <class Function, class = std::enable_if_t<!std::is_same_v<std::decay_t<Function>, Callback>>>
  Callback(Function&& function) {
    store(std::forward<Function>(function));
  }

  Callback(Callback&& other) noexcept { take_from(other); }
  Callback& operator=(Callback&& other) noexcept {
    if (this == &other) return *this;
    clear();
    take_from(other);
    return *this;
  }
  ~Callback() { clear(); }

  /// Replaces the call in place, without the move of an assignment.
  template <class Function>
  void set(Function&& function) {
    if constexpr (std::is_same_v<std::decay_t<Function>, Callback>) {
      *this = std::forward<Function>(function);
    } else {
      clear();
      store(std::forward<Function>(function));
    }
  }

  void reset() { clear(); }

  void operator()() { table_->call(storage_); }
  explicit operator bool() const { return table_ != nullptr; }

  /// Prefetches the objects that the captured pointers point to (three cache lines for the second pointer),
  /// for a call that is about to be made. Captured words that are not pointers are prefetched too, which is
  /// harmless.
  void prefetch() const {
    const std::byte* words[kStorageBytes / sizeof(void*)];
    std::memcpy(words, storage_, sizeof words);
    for (const std::byte* word : words) __builtin_prefetch(word);
    const auto second = reinterpret_cast<std::uintptr_t>(words[1]);  // may be null
    __builtin_prefetch(reinterpret_cast<const void*>(second + 64));
    __builtin_prefetch(reinterpret_cast<const void*>(second + 128));
  }

 private:
  static constexpr std::size_t kStorageBytes = 56;  // with the table pointer: one cache line of 64 B

  struct Table {
    void (*call)(void* held);
    void (*move)(void* from, void* to);  ///< destroys `from`; null: copying the bytes suffices
    void (*destroy)(void* held);         ///< null: nothing to do
  };

  template <class Held>
  static void call_inside(void* held) {
    (*static_cast<Held*>(held))();
  }
  template <class Held>
  static void move_inside(void* from, void* to) {
    new (to) Held(std::move(*static_cast<Held*>(from)));
    static_cast<Held*>(from)->~Held();
  }
  template <class Held>
  static void destroy_inside(void* held) {
    static_cast<Held*>(held)->~Held();
  }
  template <class Held>
  static void call_outside(void* held) {
    (**static_cast<Held**>(held))();
  }
  template <class Held>
  static void destroy_outside(void* held) {
    delete *static_cast<Held**>(held);
  }

  template <class Held>
  static constexpr Table kInside{call_inside<Held>,
                                 std::is_trivially_copyable_v<Held> ? nullptr : move_inside<Held>,
                                 std::is_trivially_destructible_v<Held> ? nullptr : destroy_inside<Held>};
  template <class Held>
  static constexpr Table kOutside{call_outside<Held>, nullptr, destroy_outside<Held>};

  template <class Function>
  void store(Function&& function) {
    using Held = std::decay_t<Function>;
    if constexpr (sizeof(Held) <= kStorageBytes && alignof(Held) <= alignof(void*)) {
      new (storage_) Held(std::forward<Function>(function));
      table_ = &kInside<Held>;
    } else {
      new (storage_) Held*(new Held(std::forward<Function>(function)));
      table_ = &kOutside<Held>;
    }
  }
  void take_from(Callback& other) {
    table_ = std::exchange(other.table_, nullptr);
    if (table_ == nullptr) return;
    if (table_->move == nullptr) {
      std::memcpy(storage_, other.storage_, kStorageBytes);
    } else {
      table_->move(other.storage_, storage_);
    }
  }
  void clear() {
    const Table* table = std::exchange(table_, nullptr);
    if (table != nullptr && table->destroy != nullptr) table->destroy(storage_);
  }

  const Table* table_ = nullptr;
  alignas(void*) std::byte storage_[kStorageBytes]{};
};

}  // namespace stepcast
