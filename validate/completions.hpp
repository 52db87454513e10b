#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>

#include "strategies/program.hpp"
#include "validate/leisure.hpp"

namespace stepcast {

/// Operations that another thread has done; only the thread that runs the program completes them.
class Completions {
 public:
  /// @param leisure          of the core, which the program leaves while it waits; may be null
  /// @param begins_to_wait   called then
  explicit Completions(Leisure* leisure = nullptr, std::function<void()> begins_to_wait = {})
      : leisure_(leisure), begins_to_wait_(std::move(begins_to_wait)) {}

  void post(Pending operation);
  /// The next one; null after a second without any.
  Pending next();

 private:
  bool wait(std::unique_lock<std::mutex>& lock);

  Leisure* leisure_;
  bool waits_ = false;  ///< a program that has computed
  std::function<void()> begins_to_wait_;
  std::mutex mutex_;
  std::condition_variable posted_;
  std::deque<Pending> done_;
};

}  // namespace stepcast
