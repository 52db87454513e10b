#include "validate/prompt_thread.hpp"

#include <linux/sched/types.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace stepcast {

/// A slice shorter than others' (some milliseconds): the scheduler lets who asks for less run first, and asks
/// no privilege for it. Source: kernel/sched/fair.c, PREEMPT_SHORT.
void be_prompt() {
  constexpr unsigned long kSlice = 100'000;  // ns, the least there is
  sched_attr attributes{};
  if (syscall(SYS_sched_getattr, 0, &attributes, sizeof attributes, 0) != 0) return;
  attributes.sched_runtime = kSlice;
  syscall(SYS_sched_setattr, 0, &attributes, 0);
}

}  // namespace stepcast
