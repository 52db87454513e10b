#include "commands/task_progress.hpp"

#include <algorithm>
#include <iostream>

namespace stepcast {

TaskProgress::TaskProgress(std::size_t tasks)
    : tasks_(tasks), progress_(std::cerr, progress_style(), tasks) {}

void TaskProgress::one_done() {
  done_ = std::min(done_ + 1, tasks_);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  progress_.update(done_, {elapsed.count()});
}

}  // namespace stepcast
