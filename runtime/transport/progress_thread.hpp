#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/transport/thread_scheduling.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

/// Queue of operations that progress threads have finished. Only the thread that runs the program takes
/// operations out and completes them.
class CompletionQueue {
 public:
  /// @param polling  policy of the rank's core, which is marked as free while the program waits; may be null
  /// @param on_wait  called when the program begins to wait; may be empty
  explicit CompletionQueue(PollingPolicy* polling = nullptr, std::function<void()> on_wait = {})
      : polling_(polling), on_wait_(std::move(on_wait)) {}

  void post(Pending operation);
  /// Waits for the next finished operation. Returns null after one second without any.
  Pending next();

 private:
  bool wait(std::unique_lock<std::mutex>& lock);

  PollingPolicy* polling_;
  bool program_waits_ = false;  ///< the program waits here and was marked as computing before
  std::function<void()> on_wait_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Pending> completed_;
};

/// A thread that executes submitted functions in order, beside the thread that submits them. It makes
/// communication overlap with computation, because MPI alone makes no progress outside its calls.
class ProgressThread {
 public:
  /// @param heartbeat  counter, incremented at least once a second while the thread is idle and set to 0 when
  ///                   it ends; may be null
  /// @param polling    policy of the rank's core; its `pending_collectives` counts what was submitted here
  /// and
  ///                   is not finished; may be null
  explicit ProgressThread(std::atomic<std::uint64_t>* heartbeat = nullptr, PollingPolicy* polling = nullptr);
  ProgressThread(const ProgressThread&) = delete;
  ProgressThread& operator=(const ProgressThread&) = delete;
  ~ProgressThread();  ///< finishes all submitted functions first

  void submit(std::function<void()> work);
  /// Forgets all submitted functions that have not begun.
  void discard();

 private:
  void run();

  std::atomic<std::uint64_t>* heartbeat_;
  PollingPolicy* polling_;
  std::mutex mutex_;
  std::condition_variable submitted_;
  std::deque<std::function<void()>> queue_;
  bool closing_ = false;
  std::thread thread_;  // declared last: it uses the other members
};

}  // namespace stepcast
