#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace stepcast {

/// Runs in a child process and returns text to its parent.
using Task = std::function<std::string()>;

/// Runs every task in a process of its own, at most `processes` at once, and calls `done(task, text)` here as
/// each ends. SimGrid allows one simulation a process; what was read before is inherited, not read again.
///
/// @param meanwhile  called several times a second; may be empty, and may throw
/// @throws what a task threw (InputError, LimitError, else std::runtime_error), after stopping the others;
/// Interrupted after SIGINT or SIGTERM
void run_tasks(const std::vector<Task>& tasks, int processes,
               const std::function<void(std::size_t task, const std::string& text)>& done,
               const std::function<void()>& meanwhile = {});

}  // namespace stepcast
