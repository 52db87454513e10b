#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include "validate/leisure.hpp"

namespace stepcast {

/// Runs what it is given, one after the other, beside the thread that gives it: how communication overlaps
/// with compute, as MPI alone progresses nothing.
class CommunicationThread {
 public:
  /// @param beat     counted up at least once a second while there is nothing to do, 0 at its end; may be
  /// null
  /// @param leisure  of the core, whose `collectives` are what was given here; may be null
  explicit CommunicationThread(std::atomic<std::uint64_t>* beat = nullptr, Leisure* leisure = nullptr);
  CommunicationThread(const CommunicationThread&) = delete;
  CommunicationThread& operator=(const CommunicationThread&) = delete;
  ~CommunicationThread();  ///< finishes what was given

  void submit(std::function<void()> work);

 private:
  void run();

  std::atomic<std::uint64_t>* beat_;
  Leisure* leisure_;
  std::mutex mutex_;
  std::condition_variable there_is_work_;
  std::deque<std::function<void()>> work_;
  bool closing_ = false;
  std::thread thread_;  // last: it uses the others
};

}  // namespace stepcast
