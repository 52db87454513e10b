#include "validate/awake_cores.hpp"

#include <sched.h>

namespace stepcast {

AwakeCores::AwakeCores() {
  const unsigned cores = std::thread::hardware_concurrency();
  for (unsigned i = 0; i < cores; ++i) {
    threads_.emplace_back([this] {
      const sched_param none{};
      // Without it the thread would take cores from the ranks.
      if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) return;
      while (!over_.load(std::memory_order_relaxed)) {
      }
    });
  }
}

AwakeCores::~AwakeCores() {
  over_ = true;
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace stepcast
