#pragma once

#include <atomic>

namespace stepcast {

/// What a rank's core has to do. The program and the threads that communicate share it: while the program
/// waits too, who waits for another rank looks into shared memory all the time, as MPI and NCCL do. A thread
/// that sleeps is woken 30 to 60 us late on a virtual core.
struct Leisure {
  std::atomic<bool> computes = false;  ///< the program
  std::atomic<int> collectives = 0;    ///< given to the communication thread and not done

  bool for_collectives() const { return !computes.load(std::memory_order_relaxed); }
  /// Whoever the program waits for, one of both threads looks.
  bool for_messages() const { return for_collectives() && collectives.load(std::memory_order_relaxed) == 0; }
};

/// While it lives, the program computes, unless it waits.
class Computing {
 public:
  explicit Computing(Leisure* leisure) : leisure_(leisure) {
    if (leisure_ != nullptr) leisure_->computes = true;
  }
  Computing(const Computing&) = delete;
  Computing& operator=(const Computing&) = delete;
  ~Computing() {
    if (leisure_ != nullptr) leisure_->computes = false;
  }

 private:
  Leisure* leisure_;
};

}  // namespace stepcast
