#pragma once

#include <chrono>

#include "report/progress.hpp"

namespace stepcast {

/// How many of a number of equal tasks are done, with the time that is left, on standard error.
class TaskProgress {
 public:
  TaskProgress(std::size_t tasks, std::string what);  ///< "simulations"

  void one_done();                     ///< more than there are: all are done
  void clear() { progress_.clear(); }  ///< before anything else is printed

 private:
  std::size_t tasks_, done_ = 0;
  std::string what_;
  Progress progress_;
  std::chrono::steady_clock::time_point started_ = std::chrono::steady_clock::now();
};

}  // namespace stepcast
