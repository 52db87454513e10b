#pragma once

#include <coroutine>
#include <exception>
#include <utility>

#include "core/free_lists.hpp"

namespace stepcast {

/// A part of a program that several programs share and await: `exchange(worker, ...)`. It runs at once, up to
/// its first wait, and goes back to who awaits it when it is through. Its arguments are references to what
/// outlives it.
class Part {
 public:
  struct promise_type {
    std::coroutine_handle<> caller;
    std::exception_ptr error;

    /// Goes on with the caller, unless the part ran through before the caller could suspend.
    struct Return {
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> part) noexcept {
        if (const auto waiting = part.promise().caller) waiting.resume();
      }
      void await_resume() const noexcept {}
    };

    static void* operator new(std::size_t bytes) { return FreeLists::take(bytes); }
    static void operator delete(void* frame, std::size_t bytes) { FreeLists::give(frame, bytes); }

    Part get_return_object() { return Part(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    Return final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit Part(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Part(Part&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Part& operator=(Part&&) = delete;
  ~Part() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() {
    handle_.resume();
    return handle_.done();
  }
  void await_suspend(std::coroutine_handle<> caller) { handle_.promise().caller = caller; }
  void await_resume() const {
    if (handle_.promise().error) std::rethrow_exception(handle_.promise().error);
  }

 private:
  std::coroutine_handle<promise_type> handle_;
};

}  // namespace stepcast
