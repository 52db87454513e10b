#pragma once

#include <signal.h>

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "report/text/progress.hpp"

namespace stepcast {

/// Catches SIGINT and SIGTERM during its lifetime. Guards may be nested; a signal is remembered until the
/// outermost guard ends.
class SignalGuard {
 public:
  SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard();

  static bool interrupted();
  static void stop_if_interrupted();  ///< Throws Interrupted after a signal.

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

/// Progress of a number of equal tasks and the estimated remaining time, on standard error.
class TaskProgress {
 public:
  /// @param what  plural noun for the tasks, such as "simulations"
  TaskProgress(std::size_t tasks, std::string what);

  void one_done();  ///< Counts a finished task; the count never exceeds the number of tasks.
  void clear() { progress_.clear(); }  ///< Removes the progress line; call it before printing anything else.

 private:
  std::size_t tasks_, done_ = 0;
  std::string what_;
  Progress progress_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

/// A function that runs in a child process; its text is sent to the parent.
using Task = std::function<std::string()>;

/// Runs every task in its own child process, at most `processes` at the same time, and calls `done(task,
/// text)` in this process when a task ends. SimGrid allows one simulation per process. A child inherits the
/// parent's memory, so files are not read again.
///
/// @param meanwhile  called several times a second; may be empty, and may throw
/// @throws InputError, LimitError, std::runtime_error  the exception of a task (other types become
///         std::runtime_error), after all other children are stopped
/// @throws Interrupted  after SIGINT or SIGTERM
void run_tasks(const std::vector<Task>& tasks, int processes,
               const std::function<void(std::size_t task, const std::string& text)>& done,
               const std::function<void()>& meanwhile = {});

}  // namespace stepcast
