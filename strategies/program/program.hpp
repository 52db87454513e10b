#pragma once

#include <coroutine>
#include <cstdint>
#include <exception>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/memory.hpp"
#include "core/typed_numbers.hpp"
#include "models/layer_times/compression_times.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

/// A role of a plan: its index in Plan::roles.
using RoleId = TypedId<struct RoleTag>;

/// A rank of a run: its index in Plan::endpoints. Ranks within one communicator are plain numbers, called
/// positions.
using RankId = TypedId<struct RankTag>;

/// A collective of a plan: its index in Plan::collectives.
using CollectiveId = TypedId<struct CollectiveTag>;

/// The tag of a message, as in MPI. Each strategy lists its tags in an unscoped enumeration, whose values are
/// tags; a plain number is none.
struct MessageTag {
  int value = 0;

  constexpr MessageTag() = default;
  constexpr explicit MessageTag(int number) : value(number) {}
  template <class Name>
  requires std::is_enum_v<Name> && std::is_convertible_v<Name, int>
  constexpr MessageTag(Name name) : value(name) {}

  constexpr bool operator==(const MessageTag&) const = default;
};

/// Compression of the elements of a message.
struct Codec {
  Compression kind = Compression::none;
  std::int64_t rows = 1;  ///< one_bit: elements of a column
  double density = 1;     ///< top_k: share of the elements that each worker sends
  int owners = 1;         ///< one_bit, fp16: workers that each sum a share; top_k: workers that send
  bool feedback = true;   ///< the quantization error is added to the next gradient
};

/// Arrays of a worker or server. All but the last three have the length of the model's parameters.
enum class Array {
  none,
  gradients,
  parameters,
  update,  ///< update that goes to a server or came from a worker
  center,  ///< parameters that came last from a server, or with which a block started
  model,   ///< state of a strategy's arithmetic: earlier parameters
  change,  ///< state of a strategy's arithmetic: velocity of the parameters
  statistics,
  activations,
  errors  ///< error signals of activations
};

/// Part of an array that a collective or a message carries. A simulation uses `size`; a real run moves the
/// elements.
struct Buffer {
  Array array = Array::none;
  Slice elements;
  Bytes size;  ///< size of the message
  Codec codec = {};
};

/// Identifies a payload that travels apart from its message, from device to device. Only real runs use it.
struct PayloadId {
  std::int64_t number = 0;  ///< unique in the run; 0: no payload
  std::int64_t floats = 0;
};

/// A message from one role to another.
struct Message {
  RoleId from = {};  ///< role of the sender; set by the runtime
  MessageTag tag;    ///< a receive matches messages with its tag
  Buffer buffer;
  int parts = 1;         ///< number of messages, sent one after the other, that carry it
  double value = 0;      ///< number in the message, such as a version or a count
  bool answered = true;  ///< its receiver answers, where its kind of message can be answered
  PayloadId payload = {};
};

/// An operation that a worker started. The runtime completes it from an event of its own, never inside the
/// call that started it. At most one program waits for it.
struct Operation {
  bool done = false;
  double end = 0;   ///< time of completion, on the runtime's clock
  Message message;  ///< message of a receive
  std::coroutine_handle<> waiter;
  std::exception_ptr error;  ///< thrown where the program waits

  void complete() {
    done = true;
    if (waiter) std::exchange(waiter, nullptr).resume();
  }
};

/// Handle to a started operation; keep it and wait with `co_await worker.finished(pending)`.
using Pending = std::shared_ptr<Operation>;

/// Receiver of the event that a program has waited for an operation. A simulation advances the worker's clock
/// to the end of the operation.
class Waiter {
 public:
  virtual ~Waiter() = default;
  virtual void waited_for(const Operation& operation) = 0;
};

/// Awaitable of an operation. Its result is the message, if the operation is a receive. It cannot be copied:
/// g++ 12 copies an awaitable that is awaited as an lvalue, and the copy never completes.
class Finished {
 public:
  Finished(Pending operation, Waiter& waiter) : operation_(std::move(operation)), waiter_(waiter) {}
  Finished(const Finished&) = delete;
  Finished& operator=(const Finished&) = delete;
  ~Finished() {
    if (operation_->waiter) operation_->waiter = nullptr;  // the waiting frame is being destroyed
  }

  bool await_ready() const { return operation_->done; }
  void await_suspend(std::coroutine_handle<> handle) { operation_->waiter = handle; }
  Message await_resume() const {
    if (operation_->error) std::rethrow_exception(operation_->error);
    waiter_.waited_for(*operation_);
    return operation_->message;
  }

 private:
  Pending operation_;
  Waiter& waiter_;
};

/// The program of a worker: a coroutine that runs from `start` on. This object owns its frame.
class Program {
 public:
  struct promise_type {
    std::exception_ptr error;

    Program get_return_object() { return Program(std::coroutine_handle<promise_type>::from_promise(*this)); }
    std::suspend_always initial_suspend() noexcept { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit Program(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  Program(Program&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  Program& operator=(Program&&) = delete;
  ~Program() {
    if (handle_) handle_.destroy();
  }

  void start() { handle_.resume(); }
  bool done() const { return handle_.done(); }
  std::exception_ptr error() const { return handle_.promise().error; }

 private:
  std::coroutine_handle<promise_type> handle_;
};

/// A part of a program that a program awaits, such as `exchange(worker, ...)`. It runs immediately up to its
/// first wait, and resumes its caller when it ends. Its reference arguments must outlive it.
class SubProgram {
 public:
  struct promise_type {
    std::coroutine_handle<> caller;
    std::exception_ptr error;

    /// Resumes the caller, unless the part ended before the caller was suspended.
    struct Return {
      bool await_ready() const noexcept { return false; }
      void await_suspend(std::coroutine_handle<promise_type> part) noexcept {
        if (const auto waiting = part.promise().caller) waiting.resume();
      }
      void await_resume() const noexcept {}
    };

    static void* operator new(std::size_t bytes) { return FreeLists::allocate(bytes); }
    static void operator delete(void* frame, std::size_t bytes) { FreeLists::deallocate(frame, bytes); }

    SubProgram get_return_object() {
      return SubProgram(std::coroutine_handle<promise_type>::from_promise(*this));
    }
    std::suspend_always initial_suspend() noexcept { return {}; }
    Return final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { error = std::current_exception(); }
  };

  explicit SubProgram(std::coroutine_handle<promise_type> handle) : handle_(handle) {}
  SubProgram(SubProgram&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  SubProgram& operator=(SubProgram&&) = delete;
  ~SubProgram() {
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
