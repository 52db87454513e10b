#pragma once

#include <chrono>

#include "report/progress.hpp"

namespace stepcast {

/// How many of a number of equal tasks are done, with the time that is left, on standard error.
class TaskProgress {
 public:
  explicit TaskProgress(std::size_t tasks);
  TaskProgress(const TaskProgress&) = delete;
  ~TaskProgress() { clear(); }

  void one_done();                     ///< more than there are: all are done
  void clear() { progress_.clear(); }  ///< before anything else is printed

 private:
  std::size_t tasks_, done_ = 0;
  Progress progress_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace stepcast
