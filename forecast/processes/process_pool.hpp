#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/os/process.hpp"
#include "report/text/progress.hpp"

namespace stepcast {

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
/// text)` in this process when a task ends. A child inherits the parent's memory, so files are not read
/// again.
///
/// @param meanwhile  called several times a second; may be empty, and may throw
/// @throws InputError, LimitError, std::runtime_error  the exception of a task (other types become
///         std::runtime_error), after all other children are stopped
/// @throws Interrupted  after SIGINT, SIGTERM or SIGHUP
void run_tasks(const std::vector<Task>& tasks, int processes,
               const std::function<void(std::size_t task, const std::string& text)>& done,
               const std::function<void()>& meanwhile = {});

/// The end of a task: with a text, with an exception (`text` is its message), or with its process (`text`
/// says how the process died).
struct TaskResult {
  enum class End { done, input_error, over_limit, fault, died };
  End end = End::done;
  std::string text = {};
};

/// Throws the exception that a failed task ended with; a process that died is a std::runtime_error.
[[noreturn]] void throw_failure(const TaskResult& result);

/// Child processes that run several tasks each, one after the other.
struct SharedProcesses {
  int count = 1;  ///< at the same time
  /// Called in the child after each task: true ends the process, and a new one goes on. Null: never.
  bool (*used_up)() = nullptr;
};

/// Runs the tasks 0 to `count` - 1 in child processes that run several each, because starting a process costs
/// more than a small simulation. A process gets its next task when it has finished one. The failure of a task
/// ends no other task: `done` receives it as a result. A task whose process dies is tried once more in a
/// process of its own, so that it does not suffer from the tasks before it.
/// @throws Interrupted  after SIGINT, SIGTERM or SIGHUP
void run_shared(std::size_t count, const std::function<std::string(std::size_t task)>& work,
                const SharedProcesses& processes,
                const std::function<void(std::size_t task, const TaskResult& result)>& done);

}  // namespace stepcast
