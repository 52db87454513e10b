#include "runtime/transport/wake_flags.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>

namespace stepcast {

struct alignas(64) WakeFlags::Flag {
  std::atomic<std::uint32_t> signals;
  std::atomic<std::uint32_t> sleeping;
};

std::size_t WakeFlags::bytes_for(int ranks) {
  return sizeof(Flag) * static_cast<std::size_t>(ranks);
}

WakeFlags::WakeFlags(void* memory, int rank) : flags_(static_cast<Flag*>(memory)), rank_(rank) {}

bool WakeFlags::sleep(const std::function<bool()>& ready, double seconds) {
  Flag& flag = flags_[rank_];
  if (wake_requested_.exchange(false)) return true;
  const std::uint32_t seen = flag.signals.load();
  bool timed_out = false;
  flag.sleeping.store(1);
  if (!ready() && !wake_requested_.load()) {
    const double whole = std::floor(seconds);
    const timespec limit{static_cast<time_t>(whole), static_cast<long>(1e9 * (seconds - whole))};
    timed_out =
        syscall(SYS_futex, &flag.signals, FUTEX_WAIT, seen, &limit, nullptr, 0) != 0 && errno == ETIMEDOUT;
  }
  flag.sleeping.store(0);
  return wake_requested_.exchange(false) || !timed_out;
}

/// The fence orders the store that the sleeper waits for before the load of `sleeping`.
void WakeFlags::wake_sleeping(int rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (flags_[rank].sleeping.load(std::memory_order_relaxed) != 0) signal(rank);
}

void WakeFlags::wake() {
  wake_requested_.store(true);
  signal(rank_);
}

bool WakeFlags::is_sleeping() const {
  return flags_[rank_].sleeping.load() != 0;
}

void WakeFlags::signal(int rank) {
  flags_[rank].signals.fetch_add(1);
  syscall(SYS_futex, &flags_[rank].signals, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

}  // namespace stepcast
