#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>

namespace stepcast {

/// What all ranks left in a store, where it is kept.
class LeftValues {
 public:
  explicit LeftValues(double seconds) : seconds_(seconds) {}

  void put(int rank, const std::string& key, const std::string& value) {
    {
      const std::lock_guard lock(mutex_);
      values_[{rank, key}] = value;
    }
    changed_.notify_all();
  }

  /// False: nobody left it in time, or the store was closed.
  bool get(int rank, const std::string& key, std::string& value) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds_), [&] {
      return closed_ || values_.contains({rank, key});
    });
    const auto found = values_.find({rank, key});
    if (found == values_.end()) return false;
    value = found->second;
    return true;
  }

  void close() {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  double seconds_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<int, std::string>, std::string> values_;
  bool closed_ = false;
};

}  // namespace stepcast
