#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <type_traits>
#include <utility>

namespace stepcast {

/// A call to make later. As std::function<void()>, but moved only, and with room for what most calls capture,
/// so that an event of the simulation allocates nothing.
class alignas(64) Callback {
 public:
  Callback() = default;

  template <class Function, class = std::enable_if_t<!std::is_same_v<std::decay_t<Function>, Callback>>>
  Callback(Function&& function) {
    hold(std::forward<Function>(function));
  }

  Callback(Callback&& other) noexcept { take(other); }
  Callback& operator=(Callback&& other) noexcept {
    if (this == &other) return *this;
    clear();
    take(other);
    return *this;
  }
  ~Callback() { clear(); }

  /// The same as assigning, without a move.
  template <class Function>
  void set(Function&& function) {
    if constexpr (std::is_same_v<std::decay_t<Function>, Callback>) {
      *this = std::forward<Function>(function);
    } else {
      clear();
      hold(std::forward<Function>(function));
    }
  }

  void reset() { clear(); }

  void operator()() { table_->call(room_); }
  explicit operator bool() const { return table_ != nullptr; }

  /// Has the cache fetch what it points to (the second pointer to three lines), as it is about to be called.
  /// What is no pointer is fetched too, and does no harm.
  void touch() const {
    const std::byte* words[kRoom / sizeof(void*)];
    std::memcpy(words, room_, sizeof words);
    for (const std::byte* word : words) __builtin_prefetch(word);
    const auto second = reinterpret_cast<std::uintptr_t>(words[1]);  // may be null
    __builtin_prefetch(reinterpret_cast<const void*>(second + 64));
    __builtin_prefetch(reinterpret_cast<const void*>(second + 128));
  }

 private:
  static constexpr std::size_t kRoom = 56;  // with the table a line of the cache

  struct Table {
    void (*call)(void* held);
    void (*move)(void* from, void* to);  ///< leaves nothing at `from`; null: the bytes are all
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
  void hold(Function&& function) {
    using Held = std::decay_t<Function>;
    if constexpr (sizeof(Held) <= kRoom && alignof(Held) <= alignof(void*)) {
      new (room_) Held(std::forward<Function>(function));
      table_ = &kInside<Held>;
    } else {
      new (room_) Held*(new Held(std::forward<Function>(function)));
      table_ = &kOutside<Held>;
    }
  }
  void take(Callback& other) {
    table_ = std::exchange(other.table_, nullptr);
    if (table_ == nullptr) return;
    if (table_->move == nullptr) {
      std::memcpy(room_, other.room_, kRoom);
    } else {
      table_->move(other.room_, room_);
    }
  }
  void clear() {
    const Table* table = std::exchange(table_, nullptr);
    if (table != nullptr && table->destroy != nullptr) table->destroy(room_);
  }

  const Table* table_ = nullptr;
  alignas(void*) std::byte room_[kRoom]{};
};

}  // namespace stepcast
