#include "commands/task_progress.hpp"

#include <algorithm>
#include <iostream>
#include <utility>

namespace stepcast {

TaskProgress::TaskProgress(std::size_t tasks, std::string what)
    : tasks_(tasks), what_(std::move(what)), progress_(std::cerr, progress_style()) {}

void TaskProgress::one_done() {
  done_ = std::min(done_ + 1, tasks_);
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  progress_.update(progress_text(done_, tasks_, {elapsed.count()}, what_), {elapsed.count()});
}

}  // namespace stepcast
