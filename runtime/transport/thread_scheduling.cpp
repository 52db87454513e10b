#include "runtime/transport/thread_scheduling.hpp"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace stepcast {
namespace {

/// The kernel's `struct sched_attr`, first version. The kernel's header (linux/sched/types.h) cannot be
/// included together with <sched.h>, because both define `sched_param`. Source: man 2 sched_setattr.
struct SchedulingAttributes {
  std::uint32_t size = 0, policy = 0;
  std::uint64_t flags = 0;
  std::int32_t nice = 0;
  std::uint32_t priority = 0;
  std::uint64_t runtime = 0, deadline = 0, period = 0;  ///< [ns]
};
static_assert(sizeof(SchedulingAttributes) == 48);

}  // namespace

/// Asks for a time slice shorter than the default (some milliseconds). The scheduler runs a woken thread with
/// a shorter slice first, and needs no privilege for it. Source: kernel/sched/fair.c, PREEMPT_SHORT.
void raise_wakeup_priority() {
  constexpr unsigned long kSlice = 100'000;  // ns, the smallest that the kernel allows
  SchedulingAttributes attributes;
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.runtime = kSlice;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

AwakeCores::AwakeCores() {
  const unsigned cores = std::thread::hardware_concurrency();
  for (unsigned i = 0; i < cores; ++i) {
    threads_.emplace_back([this] {
      const sched_param none{};
      // At normal priority the thread would take cores from the ranks.
      if (sched_setscheduler(0, SCHED_IDLE, &none) != 0) return;
      while (!stop_.load(std::memory_order_relaxed)) {
      }
    });
  }
}

AwakeCores::~AwakeCores() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
}

}  // namespace stepcast
