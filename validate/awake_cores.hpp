#pragma once

#include <atomic>
#include <thread>
#include <vector>

namespace stepcast {

/// While it lives, no core of this machine is idle: a thread each, at the lowest priority there is, which
/// gives way to every other. A virtual core that has nothing to do halts, and its host wakes it late: ranks
/// that sleep, and the timers of rate-limited links, then lose some milliseconds in each exchange.
class AwakeCores {
 public:
  AwakeCores();
  AwakeCores(const AwakeCores&) = delete;
  AwakeCores& operator=(const AwakeCores&) = delete;
  ~AwakeCores();

 private:
  std::atomic<bool> over_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace stepcast
