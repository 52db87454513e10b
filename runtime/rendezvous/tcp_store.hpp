#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "runtime/rendezvous/store.hpp"

namespace stepcast {

/// Key-value table in the process that serves a store (rank 0). Thread-safe.
class KeyValueTable {
 public:
  /// @param seconds  timeout of `get`
  explicit KeyValueTable(double seconds) : seconds_(seconds) {}

  void put(int rank, const std::string& key, const std::string& value) {
    {
      const std::lock_guard lock(mutex_);
      values_[{rank, key}] = value;
    }
    changed_.notify_all();
  }

  /// Waits for the value that `rank` put under `key`.
  /// @return false if no value came in time or the table was closed
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

  /// Ends all waiting calls of `get`.
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

/// Opens the store "tcp:ADDRESS:PORT" (open_store.hpp): rank 0 serves it, other ranks connect. A client sends
/// 'p', rank, key and value to put a value, or 'g', rank and key to get one. The reply to 'g' is 'v' and the
/// value, or 't' after the timeout. Texts are sent as their length and their bytes.
std::unique_ptr<Store> open_tcp_store(const std::string& where, int rank, double seconds);

}  // namespace stepcast
